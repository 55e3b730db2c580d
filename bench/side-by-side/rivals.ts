// What a user would pick instead, each as its own documentation sets it up for durable use: issuing from a P-256 key, every
// certificate kept on disk, TLS 1.3 towards the client.

import { generateKeyPairSync } from 'node:crypto'
import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as https from 'node:https'
import * as path from 'node:path'
import { createInterface } from 'node:readline'
import { makeIntermediate, makeRoot } from '#plane/authority/make-issuer.ts'
import { toPem } from '#pki/pem.ts'
import { systemRandom } from '#platform/random.ts'
import { builtPeer } from '../../test/peers/built-peer.ts'
import { startVault as startVaultServer } from '../../test/peers/vault-server.ts'
import { cleanup, type Scope } from '../../test/process/cleanup.ts'
import { eventually, within } from '../../test/process/eventually.ts'
import { freePort } from '../../test/process/free-port.ts'
import { tempFolder } from '../../test/process/temp-folder.ts'
import type { Target } from '../load-client.ts'

export type Rival = { readonly pid: number; readonly target: Target }

const hour = 3_600_000

/** `step ca init`, by hand: a root, an intermediate, a JWK provisioner and a Badger database. */
export const startStepCa = async (t: Scope): Promise<Rival> => {
  const binary = await builtPeer('step-ca')
  const folder = tempFolder(t)
  const port = await freePort()
  const making = {
    domain: 'bench',
    custody: 'file',
    lifetimeMs: 1000 * hour,
    nowMs: Date.now(),
    random: systemRandom,
  } as const
  const root = makeRoot({ ...making, pathLen: 1 })
  const issuing = makeIntermediate('issuing', root, making)
  const file = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text, { mode: 0o600 })
    return path.join(folder, name)
  }
  const rootPem = toPem('CERTIFICATE', root.certificate.der)
  const { d, ...publicJwk } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  const kid = 'bench'
  const config = {
    root: file('root.crt', rootPem),
    crt: file('issuing.crt', toPem('CERTIFICATE', issuing.certificate.der)),
    key: file('issuing.key', issuing.key.pkcs8Pem()),
    address: `127.0.0.1:${port}`,
    dnsNames: ['localhost', '127.0.0.1'],
    logger: { format: 'json' },
    db: { type: 'badgerv2', dataSource: path.join(folder, 'db') },
    authority: {
      provisioners: [{ type: 'JWK', name: 'bench', key: { ...publicJwk, kid, use: 'sig', alg: 'ES256' } }],
    },
    tls: { minVersion: 1.3, maxVersion: 1.3 },
  }
  const log = fs.openSync(path.join(folder, 'log'), 'w')
  const child = spawn(binary, [file('ca.json', JSON.stringify(config))], { stdio: ['ignore', log, log] })
  cleanup(t, () => void child.kill('SIGKILL'))
  const target: Target = {
    server: 'step-ca',
    address: `127.0.0.1:${port}`,
    name: 'localhost',
    roots: rootPem,
    provisioner: { name: 'bench', kid, audience: `https://localhost:${port}/1.0/sign`, d: d! },
  }
  await answering('step-ca', () => health(target))
  return { pid: child.pid!, target }
}

/** PKI on file storage, a role that keeps every certificate, and the root token: the least that its policies can cost. */
export const startVault = async (t: Scope): Promise<Rival> => {
  const vault = await startVaultServer(t, await builtPeer('vault'))
  const asked = async (route: string, json: object): Promise<Readonly<Record<string, unknown>>> => {
    const { status, body } = await vault.call('POST', route, json)
    if (status >= 300) throw new Error(`${route}: ${status} ${JSON.stringify(body)}`)
    return body
  }
  await asked('sys/mounts/pki', { type: 'pki', config: { max_lease_ttl: '87600h' } })
  const ca = { common_name: 'bench', key_type: 'ec', key_bits: 256, ttl: '8760h' }
  const made = await asked('pki/root/generate/internal', ca)
  await asked('pki/roles/node', { allow_any_name: true, key_type: 'ec', key_bits: 256, ttl: '24h', no_store: false })
  const { certificate: root } = made['data'] as { certificate: string }
  const { host: address } = new URL(vault.address)
  const at = { address, name: 'localhost', roots: `${vault.roots}${root}\n` }
  return { pid: vault.pid(), target: { ...at, server: 'vault', token: vault.rootToken, path: '/v1/pki/sign/node' } }
}

/** Not rivals: Node itself, and the smallest CA on it. */
export const startOnNode = async (t: Scope, program: 'node-alone' | 'smallest-ca'): Promise<Rival> => {
  const script = path.join(import.meta.dirname, `${program}.ts`)
  const child = spawn(process.execPath, [script, tempFolder(t)], { stdio: ['ignore', 'pipe', 'inherit'] })
  cleanup(t, () => void child.kill('SIGKILL'))
  const line = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once('line', resolve))
  const { port, roots } = JSON.parse(await within(program, 60_000, line)) as { port: number; roots: string }
  return { pid: child.pid!, target: { server: 'muster', address: `127.0.0.1:${port}`, name: 'localhost', roots } }
}

const answering = (name: string, ask: () => Promise<unknown>): Promise<unknown> =>
  eventually(`${name} to answer`, ask, { withinMs: 60_000 })

const health = ({ address, name, roots }: Target): Promise<true> =>
  new Promise((resolve, reject) => {
    const options = { ca: roots, servername: name, agent: false as const }
    const request = https.get(`https://${address}/health`, options, (response) => {
      response.resume()
      if (response.statusCode === 200) resolve(true)
      else reject(new Error(`/health: ${response.statusCode}`))
    })
    request.on('error', reject)
  })
