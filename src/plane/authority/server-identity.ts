// A certificate and key the plane presents, for nodes or for recovery: found at start, renewed without a restart. Its key
// file is named for the certificate and durable before the commit; a file whose certificate is not in the store is set aside
// at the next start.

import { certificateKey } from '#domain/core/certificate.ts'
import { withPart } from '#domain/core/change.ts'
import { planeMark } from '#domain/core/plane-mark.ts'
import type { IssuerId } from '#domain/core/node.ts'
import {
  orderServerCertificate,
  serverCertificateIssued,
  whyServerCertificateDue,
  type PresentedServerCertificate,
  type WhyIssued,
} from '#domain/ca/server-certificate.ts'
import { backdatingMs } from '#pki/authority-certificates.ts'
import { generateKey, loadPrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { commitOnce, retryLostRaces, type Tries } from '#plane/core/commit-decision.ts'
import { sortableId } from '#platform/random.ts'
import type { ServerIdentity } from './authority.ts'
import type { ServedNames } from './served-names.ts'
import { type CaSigner, signLeaf } from './ca-signer.ts'
import { authorityActor } from './issuer-book.ts'
import { withRoom, type KeyCustody, type KeyName } from '#plane/keys/key-custody.ts'
import type { Core } from '#plane/core/core.ts'

export type ServerCertificateParts = {
  readonly core: Omit<Core, 'timers'>
  readonly custody: KeyCustody
  readonly names: Pick<ServedNames, 'wanted' | 'claimPart' | 'look' | 'onChange'>
  readonly options: {
    readonly domain: string
    readonly serverLifetimeMs: number
  }
}

/** Which of the plane's own certificates it is, and by whom it may be signed. */
export type ServerKind = {
  readonly purpose: 'runtime' | 'recovery'
  /** The certificates above one of this issuer, its root last; DER. Null: not an authority for this purpose. */
  above(issuer: IssuerId): readonly Uint8Array[] | null
}

export type HeldServerCertificate = {
  readonly name: KeyName
  readonly presented: PresentedServerCertificate
  readonly identity: ServerIdentity
}

const keyRoles = { runtime: 'server', recovery: 'recovery-server' } as const

/** Null: there is none that could be presented. */
export const findServerCertificate = async (
  parts: ServerCertificateParts,
  kind: ServerKind,
): Promise<HeldServerCertificate | null> => {
  let best: HeldServerCertificate | null = null
  const unknown: KeyName[] = []
  // Set aside while the database was an older one: its certificate is in the store again.
  for (const name of parts.custody.asideNames().filter(({ role }) => role === keyRoles[kind.purpose])) {
    if (await isCommitted(parts, name)) await parts.custody.takeBack(name)
  }
  for (const name of parts.custody.names().filter(({ role }) => role === keyRoles[kind.purpose])) {
    const held = open(parts, kind, name)
    const committed = await isCommitted(parts, name)
    if (!committed) unknown.push(name)
    // The store forgets what has expired. Presenting that is still better than not starting: it lets an operator in.
    const ofUse = held !== null && (committed || held.presented.notAfterMs <= parts.core.clock.nowMs())
    if (ofUse && (best === null || held.presented.issuedAtMs > best.presented.issuedAtMs)) best = held
  }
  for (const name of unknown) if (name.id !== best?.name.id) await parts.custody.setAside(name)
  await dropOthers(parts, kind, best)
  return best
}

const isCommitted = async ({ core: { store } }: ServerCertificateParts, name: KeyName): Promise<boolean> => {
  const [issuer, serial] = name.id.split('.') as [string, string]
  return (await store.get('certificate', certificateKey(issuer, serial))) !== null
}

export type ServerRenewal = {
  readonly signer: CaSigner | null
  readonly held: HeldServerCertificate | null
  readonly cause: 'if due' | 'issuer replaced'
}

/** Returns the new one, or null when none was due or could be signed. */
export const renewServerCertificate = async (
  parts: ServerCertificateParts,
  kind: ServerKind,
  { signer, held, cause }: ServerRenewal,
): Promise<HeldServerCertificate | null> => {
  const nowMs = parts.core.clock.nowMs()
  if (signer === null || signer.row.notAfterMs <= nowMs) return null
  const whyDue = whyServerCertificateDue({
    current: held === null ? null : held.presented,
    wanted: parts.names.wanted(),
    issuerNotAfterMs: signer.row.notAfterMs,
    nowMs,
  })
  const why = whyDue ?? (cause === 'issuer replaced' ? cause : null)
  return why === null ? null : issue(parts, kind, held, signer, why)
}

const issue = async (
  parts: ServerCertificateParts,
  kind: ServerKind,
  before: HeldServerCertificate | null,
  signer: CaSigner,
  why: WhyIssued,
): Promise<HeldServerCertificate> => {
  const { clock, random, store } = parts.core
  const { custody, options } = parts
  const { purpose } = kind
  await dropOthers(parts, kind, before)
  const key = generateKey('p256')
  const renews = before === null ? null : before.presented.serial
  const { name, serial } = await retryLostRaces(claimTries, async () => {
    const names = parts.names.wanted()
    const order = orderServerCertificate({
      id: sortableId(clock.nowMs(), random),
      domain: options.domain,
      names,
      publicKey: key.spki,
      lifetimeMs: options.serverLifetimeMs,
      nowMs: clock.nowMs(),
    })
    const issued = await signLeaf(signer, order, random)
    const kept: KeyName = { role: keyRoles[purpose], id: `${issued.issuer}.${issued.serial}` }
    const text = key.pkcs8Pem() + toPem('CERTIFICATE', Buffer.from(issued.der, 'base64'))
    // Without a server certificate no operator could reach this plane to order a cut-off.
    await withRoom(store, () => custody.keep(kept, text))
    const claims = await parts.names.claimPart(names)
    if (claims === 'names have changed') return 'decide-again'
    const change = serverCertificateIssued(issued, { why, purpose, names, renews }, authorityActor)
    // Another replica may claim the same names at this moment.
    const done = await commitOnce(parts.core, withPart(change, claims))
    return done === 'lost-race' ? done : { name: kept, serial: issued.serial }
  })

  const held = open(parts, kind, name)
  if (held === null) throw new Error('the new server certificate cannot be read back')
  await dropOthers(parts, kind, held)
  parts.core.log.info({ serial, purpose, why }, 'issued a server certificate')
  return held
}

const claimTries: Tries<never> = {
  tries: 5,
  onBusy() {
    throw new Error('the serial number of the new server certificate is taken, or its names kept changing')
  },
}

const open = (
  { custody, options }: ServerCertificateParts,
  kind: ServerKind,
  name: KeyName,
): HeldServerCertificate | null => {
  const text = custody.find(name)
  if (text === null) return null
  const border = text.indexOf('-----BEGIN CERTIFICATE-----')
  const [keyPem, certificatePem] = [text.slice(0, border), text.slice(border)]
  const certificate = parseCertificate(fromPem('CERTIFICATE', certificatePem) ?? new Uint8Array())
  if (certificate.kind === 'malformed')
    throw new Error(`the server certificate kept with its key is not one: ${certificate.why}`)
  const { authorityKeyId: issuer, serial, notBeforeMs, notAfterMs } = certificate
  const above = issuer === null ? null : kind.above(issuer)
  if (above === null) return null

  const chainPem = [certificatePem, ...above.map((der) => toPem('CERTIFICATE', der))].join('')
  const names = { dns: certificate.dnsNames, ip: certificate.ips }
  const issuedAtMs = notBeforeMs + backdatingMs
  const marked = certificate.uris.includes(planeMark(options.domain))
  return {
    name,
    presented: { serial, notBeforeMs, issuedAtMs, notAfterMs, names, marked },
    identity: { keyPem: loadPrivateKey(keyPem).pkcs8Pem(), chainPem, notAfterMs, marked },
  }
}

const dropOthers = async (
  { custody }: ServerCertificateParts,
  { purpose }: ServerKind,
  held: HeldServerCertificate | null,
): Promise<void> => {
  for (const name of custody.names()) {
    if (name.role === keyRoles[purpose] && (held === null || name.id !== held.name.id)) await custody.drop(name)
  }
}
