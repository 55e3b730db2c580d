// A real step-ca, set up with the template and the configuration of docs/issuers/STEP-CA.md.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { type OrderDraft, placeOrder, type SigningOrder } from '#domain/core/certificate.ts'
import { makeIntermediate, makeRoot } from '#plane/authority/make-issuer.ts'
import type { TestSample } from '#plane/issuers/outside-signer.ts'
import { makeRenewalCredential, makeRenewalRoot, type RenewalCredential } from '#plane/issuers/renewal-credential.ts'
import { openStepCa, type StepCaOptions } from '#plane/issuers/step-ca.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type KeyType, type PrivateKey } from '#pki/keys.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { publicJwk } from '#pki/private-jwk.ts'
import { systemClock } from '#platform/clock.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { type Child, startChild } from '../process/child.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { openIssuerClient } from '#plane/outside/issuer-client.ts'
import { documentedBlock } from './documented-block.ts'

const page = 'issuers/STEP-CA.md'
const hour = 3_600_000
export const lifetimeMs = 24 * hour

/** The certificates of the CA and the key of the intermediate, PEM. */
export type CaFiles = { readonly root: string; readonly issuing: string; readonly issuingKey: string }

export const caFiles = (): CaFiles => {
  const making = { domain: 'outside.test', custody: 'file', nowMs: Date.now(), random: systemRandom } as const
  const root = makeRoot({ ...making, lifetimeMs: 1000 * hour, pathLen: 1 })
  const issuing = makeIntermediate('issuing', root, { ...making, lifetimeMs: 1000 * hour })
  return {
    root: toPem('CERTIFICATE', root.certificate.der),
    issuing: toPem('CERTIFICATE', issuing.certificate.der),
    issuingKey: issuing.key.pkcs8Pem(),
  }
}

export type Provisioner = Record<string, unknown> & { claims: Record<string, unknown>; options?: unknown }
/** `ca.json`, as far as the page has it. */
export type CaConfig = Record<string, unknown> & {
  dnsNames: string[]
  db?: unknown
  authority: Record<string, unknown> & { provisioners: [Provisioner, Provisioner] }
}

export type StepCaServer = {
  readonly address: string
  readonly files: CaFiles
  readonly renewalRoot: RenewalCredential
  readonly credential: RenewalCredential
  readonly provisioner: { readonly name: string; readonly keyId: string; readonly key: PrivateKey }
  /** Another template, in the file that the configuration names. In force with the next start. */
  writeTemplate(text: string): void
  /** In force with the next start; always a change of what the page has. */
  configure(change: (config: CaConfig) => void): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
  log(): string
}

export const startStepCa = async (
  t: Scope,
  binary: string,
  { files = caFiles(), change = () => {} }: { files?: CaFiles; change?: (config: CaConfig) => void } = {},
): Promise<StepCaServer> => {
  const folder = tempFolder(t)
  const port = await freePort()
  const address = `https://127.0.0.1:${port}`
  const write = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text, { mode: 0o600 })
    return path.join(folder, name)
  }
  const provisioner = { name: 'muster', keyId: 'muster-2026', key: generateKey('p256') }
  const making = { domain: 'example.test', nowMs: Date.now(), random: systemRandom }
  const renewalRoot = makeRenewalRoot(making)
  const { x = '', y = '' } = publicJwk(provisioner.key.spki)
  const template = write('muster.tpl', documentedBlock(page, 'go-template'))
  const documented = documentedBlock(page, 'json', {
    'ca.example.com': '127.0.0.1',
    '/var/lib/step-ca/db': path.join(folder, 'db'),
    '/etc/step-ca/muster.tpl': template,
    KID: provisioner.keyId,
    '"X"': JSON.stringify(x),
    '"Y"': JSON.stringify(y),
    ROOTS: Buffer.from(toPem('CERTIFICATE', renewalRoot.certificate.der)).toString('base64'),
  })
  const here = {
    address: `127.0.0.1:${port}`,
    root: write('root.crt', files.root),
    crt: write('issuing.crt', files.issuing),
    key: write('issuing.key', files.issuingKey),
    logger: { format: 'text' },
  }
  const configured = (changed: (config: CaConfig) => void): string => {
    const config = { ...(JSON.parse(documented) as CaConfig), ...here }
    changed(config)
    return write('ca.json', JSON.stringify(config))
  }
  let file = configured(change)
  let child: Child | null = null
  const client = openIssuerClient(systemTimers, { address, roots: [files.root], identity: null, mostConnections: 1 })
  cleanup(t, () => client.close())
  const server: StepCaServer = {
    address,
    files,
    renewalRoot,
    credential: makeRenewalCredential(renewalRoot, making),
    provisioner,
    writeTemplate: (text) => void write('muster.tpl', text),
    async configure(changed) {
      file = configured(changed)
      await server.stop()
      await server.start()
    },
    async start() {
      child = startChild(t, binary, [file], {})
      const healthy = async (): Promise<boolean> => {
        if (child?.running() === false) throw new Error(`step-ca has ended:\n${child.stdout()}${child.stderr()}`)
        const { status } = await client.ask({ method: 'GET', path: '/health' }, AbortSignal.timeout(5_000))
        return status === 200
      }
      await eventually('step-ca to answer', healthy, { withinMs: 30_000 })
    },
    async stop() {
      await child?.stop()
    },
    log: () => `${child?.stdout() ?? ''}${child?.stderr() ?? ''}`,
  }
  await server.start()
  return server
}

/** A signer for it, as the plane would open it. */
export const signerOf = (t: Scope, server: StepCaServer, more: Partial<StepCaOptions> = {}) => {
  const root = fromPem('CERTIFICATE', server.files.root)
  if (root === null) throw new Error('the root is not PEM')
  const signer = openStepCa({
    timers: systemTimers,
    clock: systemClock,
    random: systemRandom,
    address: server.address,
    serverRoots: [server.files.root],
    roots: [root],
    mostConnections: 4,
    enrollment: server.provisioner,
    renewal: {
      name: 'muster-renewal',
      root: server.renewalRoot.certificate.der,
      credential: () => server.credential,
    },
    revokes: null,
    samples: async () => [sampleLeaf],
    ...more,
  })
  cleanup(t, () => signer.close())
  return signer
}

/** With all that an order can have. */
export const orderFor = (publicKey: Uint8Array, change: Partial<OrderDraft> = {}): SigningOrder =>
  placeOrder({
    id: 'order-1',
    subject: { cn: 'gpu-001', o: 'Example, <Inc> & Co', ou: 'nodes' },
    uriSans: ['spiffe://example.test/node/gpu-001'],
    dnsSans: ['gpu-001.example.test'],
    ipSans: ['2001:db8::1', '192.0.2.1'],
    usage: 'client',
    publicKey,
    issuedAtMs: Date.now(),
    lifetimeMs,
    aiaUrl: null,
    cdpUrl: null,
    for: { kind: 'node', node: 'gpu-001', epoch: 1 },
    ...change,
  })

const sampleLeaf: TestSample = {
  kind: 'gpu-cloud',
  what: 'profile gpu-cloud',
  keyTypes: ['p256'],
  leastLifetimeMs: lifetimeMs / 2,
  toleranceMs: 0,
  order: (publicKey) => orderFor(publicKey),
}

/** A key, and a request that it has signed, DER. */
export const requestOf = (name: string, type: KeyType = 'p256'): { key: PrivateKey; request: Uint8Array } => {
  const key = generateKey(type)
  const request = fromPem('CERTIFICATE REQUEST', makeCsr(key, name))
  if (request === null) throw new Error('the request is not PEM')
  return { key, request }
}
