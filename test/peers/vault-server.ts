// A real Vault (vault/main.go) over TLS, on storage in a folder: it can be sealed, stopped and started again.

import { type ChildProcess, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as https from 'node:https'
import * as path from 'node:path'
import { buildCertificate } from '#pki/certificate.ts'
import { generateKey, keyId } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { systemRandom } from '#platform/random.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import { tempFolder } from '../process/temp-folder.ts'

export type VaultAnswer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> }

export type VaultPeer = {
  readonly address: string
  /** PEM. */
  readonly roots: string
  readonly rootToken: string
  pid(): number
  /** With the root token, unless another one is given. */
  call(method: string, route: string, json?: object, token?: string): Promise<VaultAnswer>
  seal(): Promise<void>
  unseal(): Promise<void>
  stop(): Promise<void>
  /** Where it was stopped; unsealed. */
  start(): Promise<void>
}

const hour = 3_600_000
const rootToken = 'root-of-the-test'

export const startVault = async (t: Scope, binary: string): Promise<VaultPeer> => {
  const folder = tempFolder(t)
  const port = await freePort()
  const server = serverCertificate()
  const [certificate, key, keys] = ['tls.crt', 'tls.key', 'keys'].map((name) => path.join(folder, name))
  fs.writeFileSync(certificate!, server.chainPem)
  fs.writeFileSync(key!, server.keyPem, { mode: 0o600 })
  const fixed = ['-tls-cert', certificate!, '-tls-key', key!, '-file', path.join(folder, 'data'), '-keys', keys!]
  const log = fs.openSync(path.join(folder, 'log'), 'a')
  const address = `https://127.0.0.1:${port}`
  let child: ChildProcess | null = null
  cleanup(t, () => void child?.kill('SIGKILL'))

  const call: VaultPeer['call'] = (method, route, json, token = rootToken) =>
    send({ address, roots: server.chainPem }, method, route, json, token)
  const unsealKey = (): string =>
    (JSON.parse(fs.readFileSync(keys!, 'utf8')) as { unseal_key_b64: string }).unseal_key_b64
  const run = async (more: readonly string[]): Promise<void> => {
    child = spawn(binary, ['-listen', `127.0.0.1:${port}`, ...fixed, ...more], { stdio: ['ignore', log, log] })
    await eventually('Vault to answer', async () => (await call('GET', 'sys/mounts')).status === 200, {
      withinMs: 60_000,
    })
  }
  await run(['-root-token', rootToken])
  return {
    address,
    roots: server.chainPem,
    rootToken,
    pid: () => child!.pid!,
    call,
    seal: async () => void (await call('PUT', 'sys/seal')),
    unseal: async () => {
      await call('PUT', 'sys/unseal', { key: unsealKey() })
      await eventually('Vault to be unsealed', async () => (await call('GET', 'sys/mounts')).status === 200)
    },
    stop: async () => {
      const ended = new Promise((resolve) => child!.once('exit', resolve))
      child!.kill('SIGKILL')
      await ended
    },
    start: () => run(['-unseal', unsealKey()]),
  }
}

const send = (
  { address, roots }: Pick<VaultPeer, 'address' | 'roots'>,
  method: string,
  route: string,
  json: object | undefined,
  token: string,
): Promise<VaultAnswer> =>
  new Promise((resolve, reject) => {
    const options = { method, headers: { 'x-vault-token': token }, ca: roots, agent: false as const }
    const request = https.request(`${address}/v1/${route}`, options, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          body: text === '' ? {} : (JSON.parse(text) as Readonly<Record<string, unknown>>),
        }),
      )
    })
    request.on('error', reject)
    request.end(json === undefined ? undefined : JSON.stringify(json))
  })

const serverCertificate = () => {
  const key = generateKey('p256')
  const name = { cn: 'vault', o: null, ou: null }
  const der = buildCertificate(
    {
      serial: systemRandom.bytes(16),
      subject: name,
      issuer: name,
      notBeforeMs: Date.now() - hour,
      notAfterMs: Date.now() + 1000 * hour,
      spki: key.spki,
      extensions: {
        ca: { pathLen: 0 },
        keyUsage: ['digitalSignature', 'keyCertSign'],
        extendedKeyUsage: ['serverAuth'],
        uris: [],
        dnsNames: ['localhost'],
        ips: ['127.0.0.1'],
        authorityKeyId: keyId(key.spki),
        aiaUrl: null,
        cdpUrl: null,
      },
    },
    key,
  )
  return { keyPem: key.pkcs8Pem(), chainPem: toPem('CERTIFICATE', der) }
}
