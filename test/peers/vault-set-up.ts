// Vault as docs/issuers/VAULT.md sets it up, and what a plane makes of it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { after, before } from 'node:test'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import type { KeyType, Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import type { SigningOrder } from '#domain/core/certificate.ts'
import { orderNodeCertificate } from '#domain/identity/node-certificate.ts'
import { generateKey, type PrivateKey, spkiHash } from '#pki/keys.ts'
import { makeCsr } from '#pki/csr.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { judgeReturned, type ReturnedVerdict } from '#pki/returned-certificate.ts'
import type { Attempt, OutsideSigner, Returned, TestSample } from '#plane/issuers/outside-signer.ts'
import { openVaultIssuer, type VaultIssuer } from '#plane/issuers/vault-issuer.ts'
import type { TransitHost } from '#plane/keys/transit-host.ts'
import { tokenInFile, type VaultLogin } from '#plane/outside/vault-login.ts'
import { openVault, type Vault } from '#plane/outside/vault-server.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { systemTimers } from '#platform/timers.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { builtPeer } from './built-peer.ts'
import { documentedCommands } from './documented-block.ts'
import { runVaultCommands } from './vault-commands.ts'
import { startVault, type VaultPeer } from './vault-server.ts'

export const page = 'issuers/VAULT.md'
export const mount = 'muster-pki'
export const never = new AbortController().signal

/** The CA, the role and the policy of the page. The root, DER. */
export const setUpPki = async (peer: VaultPeer): Promise<Uint8Array> => {
  const [, made] = await runVaultCommands(peer, documentedCommands(page, 'root/generate'))
  for (const block of ['allowed_uri_sans=', 'policy write muster-issuer'])
    await runVaultCommands(peer, documentedCommands(page, block))
  return fromPem('CERTIFICATE', String(dataOf(made?.body)['certificate']))!
}

/** One Vault for the tests of a suite. In force when they run. */
export const vaultOfSuite = (): VaultOfSuite => {
  const ends: (() => unknown)[] = []
  const scope = { after: (end: () => unknown) => void ends.push(end) }
  let opened: VaultOfSuite | null = null
  before(async () => {
    const server = await startVault(scope, await builtPeer('vault'))
    const root = await setUpPki(server)
    const vault = await connectByToken(scope, server)
    opened = { server, root, vault, issuer: issuerAt(vault, root) }
  })
  after(async () => {
    for (const end of ends) await end()
  })
  const there = (): VaultOfSuite => opened ?? assert.fail('the Vault of this suite has not started')
  return {
    get server() {
      return there().server
    },
    get root() {
      return there().root
    },
    get vault() {
      return there().vault
    },
    get issuer() {
      return there().issuer
    },
  }
}

type VaultOfSuite = {
  readonly server: VaultPeer
  /** DER. */
  readonly root: Uint8Array
  readonly vault: Vault
  readonly issuer: OutsideSigner
}

export const serialOf = ({ chain: [leaf] }: Returned): string => {
  const certificate = parseCertificate(leaf!)
  assert.ok(certificate.kind === 'certificate')
  return certificate.serial
}

export const dataOf = (body: unknown): Readonly<Record<string, unknown>> =>
  ((body as { data?: object } | undefined)?.data ?? {}) as Readonly<Record<string, unknown>>

const authOf = (body: unknown): Readonly<Record<string, unknown>> =>
  ((body as { auth?: object } | undefined)?.auth ?? {}) as Readonly<Record<string, unknown>>

/** A file with a token as the page makes it. */
export const tokenFile = async (t: Scope, peer: VaultPeer, here: Record<string, string> = {}): Promise<string> => {
  const [made] = await runVaultCommands(peer, documentedCommands(page, 'token create', here))
  const file = path.join(tempFolder(t), 'token')
  fs.writeFileSync(file, `${String(authOf(made?.body)['client_token'])}\n`, { mode: 0o600 })
  return file
}

export const connect = (
  t: Scope,
  peer: Pick<VaultPeer, 'address' | 'roots'>,
  login: VaultLogin,
  clock: Clock = systemClock,
): Vault => {
  const server = { address: peer.address, roots: [peer.roots], namespace: null, login, mostConnections: 4 }
  const vault = openVault(
    { clock, timers: systemTimers },
    { ...server, limits: { connectMs: 20_000, answerMs: 20_000 } },
  )
  cleanup(t, () => vault.close())
  return vault
}

/** The mount and the login of a plane as the page has them; what a plane is told of them. */
export const transitHost = async (t: Scope, peer: VaultPeer): Promise<TransitHost> => {
  await runVaultCommands(peer, documentedCommands(page, 'path=muster-transit'))
  const folder = tempFolder(t)
  fs.writeFileSync(path.join(folder, 'roots.pem'), peer.roots)
  return {
    address: peer.address,
    rootsFile: path.join(folder, 'roots.pem'),
    login: { kind: 'token' },
    secretFile: await tokenFile(t, peer, { 'muster-issuer': 'muster-plane' }),
    mount: 'muster-transit',
  }
}

export const connectByToken = async (t: Scope, peer: VaultPeer, clock?: Clock): Promise<Vault> =>
  connect(t, peer, tokenInFile(await tokenFile(t, peer)), clock)

const gpuCloud = shippedProfiles.find(({ name }) => name === 'gpu-cloud')!

const orderFor = (publicKey: Uint8Array, keyType: KeyType, profile: Profile = gpuCloud): SigningOrder => {
  const ordered = orderNodeCertificate({
    id: 'order-1',
    node: 'gpu-001',
    epoch: 1,
    profile,
    domain: defaultDomainSettings('example.org'),
    key: { kind: 'key', keyType, spki: publicKey, spkiHash: spkiHash(publicKey) },
    nowMs: Date.now(),
  })
  if (ordered.kind === 'refused') throw new Error(ordered.code)
  return ordered.order
}

export const sampleOf = (profile: Profile = gpuCloud): TestSample => ({
  kind: profile.name,
  what: `profile ${profile.name}`,
  keyTypes: profile.certificate.keyTypes,
  leastLifetimeMs: profile.certificate.lifetimeMs / 2,
  toleranceMs: 0,
  order: (publicKey) => orderFor(publicKey, 'ed25519', profile),
})

export const issuerAt = (vault: Vault, root: Uint8Array, more: Partial<VaultIssuer> = {}): OutsideSigner =>
  openVaultIssuer({
    vault,
    clock: systemClock,
    mount,
    roles: { 'gpu-cloud': 'gpu-cloud' },
    abilities: null,
    outsideRoots: [root],
    samples: () => Promise.resolve([sampleOf()]),
    ...more,
  })

export type Asked = { readonly key: PrivateKey; readonly attempt: Attempt }

/** `request`: DER, of that key; left out: one as an agent makes it. */
export const askFor = (key: PrivateKey = generateKey('p256'), request?: Uint8Array): Asked => ({
  key,
  attempt: {
    order: orderFor(key.spki, key.type),
    kind: 'gpu-cloud',
    purpose: 'enrollment',
    request: request ?? fromPem('CERTIFICATE REQUEST', makeCsr(key, 'whatever the node says'))!,
    serial: null,
  },
})

export const signed = async (issuer: OutsideSigner, { attempt }: Asked = askFor()): Promise<Returned> => {
  const answer = await issuer.sign(attempt, never)
  if (answer.kind !== 'returned') throw new Error(`${answer.kind}: ${answer.why}`)
  return answer
}

export const judged = ({ attempt }: Asked, { chain }: Returned, root: Uint8Array): ReturnedVerdict =>
  judgeReturned({
    order: attempt.order,
    chain,
    roots: [root],
    withdrawn: [],
    serial: null,
    isOnRecord: false,
    answeredAtMs: Date.now() + 1000,
    clock: { aheadMs: null, toleranceMs: 0 },
    leastLifetimeMs: attempt.order.lifetimeMs / 2,
  })
