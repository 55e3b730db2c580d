// The plane's own certificate and key: found at start, renewed without a restart. Its key file is named for the
// certificate and durable before the commit; a file whose certificate was never committed is dropped at the next start.

import { certificateKey } from '#domain/certificate.ts'
import {
  orderServerCertificate,
  serverCertificateIssued,
  whyServerCertificateDue,
  type PresentedServerCertificate,
  type WhyIssued,
} from '#domain/server-certificate.ts'
import { backdatingMs } from '#pki/authority-certificates.ts'
import { generateKey, loadPrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import { sortableId } from '#platform/random.ts'
import type { ServerIdentity } from './authority.ts'
import type { AuthorityDeps, AuthorityState } from './authority-state.ts'
import type { CaSigner } from './ca-signer.ts'
import type { IssuerBook } from './issuer-book.ts'
import { byItself } from './issuer-entries.ts'
import type { KeyName } from './key-custody.ts'
import { signLeaf } from './sign-leaf.ts'

export type HeldServerCertificate = {
  readonly name: KeyName
  readonly presented: PresentedServerCertificate
  readonly identity: ServerIdentity
}

/** Null: there is none that could be presented. */
export const findServerCertificate = async (
  deps: AuthorityDeps,
  book: IssuerBook,
): Promise<HeldServerCertificate | null> => {
  let best: HeldServerCertificate | null = null
  for (const name of deps.custody.names().filter(({ role }) => role === 'server')) {
    const held = open(deps, book, name)
    const [issuer, serial] = name.id.split('.') as [string, string]
    const committed = (await deps.store.get('certificate', certificateKey(issuer, serial))) !== null
    // The store forgets what has expired. Presenting that is still better than not starting: it lets an operator in.
    const ofUse = held !== null && (committed || held.presented.notAfterMs <= deps.clock.nowMs())
    if (ofUse && (best === null || held.presented.issuedAtMs > best.presented.issuedAtMs)) best = held
  }
  dropOthers(deps, best)
  return best
}

/** Returns the new identity, or null when none was due or could be signed. */
export const renewServerCertificate = async (
  deps: AuthorityDeps,
  state: AuthorityState,
  cause: 'if due' | 'issuer replaced',
): Promise<ServerIdentity | null> => {
  const { signer, server } = state
  const nowMs = deps.clock.nowMs()
  if (signer === null || signer.record.notAfterMs <= nowMs) return null
  const whyDue = whyServerCertificateDue({
    current: server === null ? null : server.presented,
    wanted: deps.options.serverNames,
    issuerNotAfterMs: signer.record.notAfterMs,
    nowMs,
  })
  const why = whyDue ?? (cause === 'issuer replaced' ? cause : null)
  return why === null ? null : issue(deps, state, signer, why)
}

const issue = async (
  deps: AuthorityDeps,
  state: AuthorityState,
  signer: CaSigner,
  why: WhyIssued,
): Promise<ServerIdentity> => {
  const { clock, custody, options, random, store } = deps
  const { server, book } = state
  dropOthers(deps, server)
  const key = generateKey('p256')
  const order = orderServerCertificate({
    id: sortableId(clock.nowMs(), random),
    domain: options.domain,
    names: options.serverNames,
    publicKey: key.spki,
    lifetimeMs: options.serverLifetimeMs,
    nowMs: clock.nowMs(),
  })
  const issued = signLeaf(signer, order, random)
  const name: KeyName = { role: 'server', id: `${issued.issuer}.${issued.serial}` }
  custody.keep(name, key.pkcs8Pem() + toPem('CERTIFICATE', Buffer.from(issued.der, 'base64')))

  const renews = server === null ? null : server.presented.serial
  const change = serverCertificateIssued(issued, { why, names: options.serverNames, renews }, byItself)
  const outcome = await store.commit(change)
  if (outcome === 'lost-race') throw new Error('the serial number of the new server certificate is taken')
  deps.feed.publish(outcome)

  const held = open(deps, book, name)
  if (held === null) throw new Error('the new server certificate cannot be read back')
  state.server = held
  dropOthers(deps, held)
  deps.log.info({ serial: issued.serial, why }, 'the server certificate has been renewed')
  return held.identity
}

const open = ({ custody }: AuthorityDeps, book: IssuerBook, name: KeyName): HeldServerCertificate | null => {
  const text = custody.find(name)
  if (text === null) return null
  const border = text.indexOf('-----BEGIN CERTIFICATE-----')
  const [keyPem, certificatePem] = [text.slice(0, border), text.slice(border)]
  const certificate = parseCertificate(fromPem('CERTIFICATE', certificatePem) ?? new Uint8Array())
  if (certificate.kind === 'malformed')
    throw new Error(`the server certificate kept with its key is not one: ${certificate.why}`)
  const { authorityKeyId: issuer, serial, notBeforeMs, notAfterMs } = certificate
  if (issuer === null || book.find(issuer) === null) return null

  const path = book.pathOf(issuer)
  const above = [...path.intermediates, Buffer.from(path.root.der, 'base64')]
  const chainPem = [certificatePem, ...above.map((der) => toPem('CERTIFICATE', der))].join('')
  const names = { dns: certificate.dnsNames, ip: certificate.ips }
  const issuedAtMs = notBeforeMs + backdatingMs
  return {
    name,
    presented: { serial, notBeforeMs, issuedAtMs, notAfterMs, names },
    identity: { keyPem: loadPrivateKey(keyPem).pkcs8Pem(), chainPem, notAfterMs },
  }
}

const dropOthers = ({ custody }: AuthorityDeps, held: HeldServerCertificate | null): void => {
  for (const name of custody.names()) {
    if (name.role === 'server' && (held === null || name.id !== held.name.id)) custody.drop(name)
  }
}
