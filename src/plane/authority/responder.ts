// Who answers for an issuing CA by OCSP: a key of its own, certified by that CA before it signs anything else, and living
// as long. It is kept where every plane of the domain finds it, so that the certificates of an issuer in memory can still
// be asked about when the plane that held its key is gone. Its key may be in a token or in Transit.

import { responderSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import type { ResponderIdentity } from '#pki/ocsp-response.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { AuthorityParts } from './authority-state.ts'
import { type CaSigner, newSerial } from './ca-signer.ts'
import type { KeyCustody, KeyName } from '#plane/keys/key-custody.ts'
import { isReference } from '#plane/keys/key-reference.ts'
import { isKeyUnavailable } from '#plane/keys/key-unavailable.ts'
import { referenceAt, signerOfKept } from '#plane/keys/keys-elsewhere.ts'
import { custodyOf, keyHere, type NewKey } from './new-key.ts'
import { findOrMake } from './root-key.ts'

const nameOf = (issuer: IssuerId): KeyName => ({ role: 'responder', id: issuer })

type KeepingParts = Pick<AuthorityParts, 'core' | 'custody' | 'options'>

/**
 * Durable when it resolves. Does nothing where there is one; where replicas share keys, only for an issuer of one's own. Where a key
 * that is elsewhere cannot be used now, the issuer signs without a responder, until `completeResponder` makes up for it.
 */
export const keepResponder = async (parts: KeepingParts, issuer: CaSigner): Promise<void> => {
  try {
    await makeResponder(parts, issuer)
  } catch (error) {
    if (!isKeyUnavailable(error)) throw error
    parts.core.log.warn(
      { err: error, issuer: issuer.row.id },
      'the OCSP responder could not be made; it is tried again',
    )
  }
}

const makeResponder = async (parts: KeepingParts, issuer: CaSigner): Promise<void> => {
  const { core, custody, options } = parts
  const { clock, random } = core
  const name = nameOf(issuer.row.id)
  if (issuer.row.role !== 'issuing' || custody.has(name)) return
  const { key, kept } = await responderKey(parts, issuer)
  const request = {
    domain: options.domain,
    spki: key.spki,
    serial: newSerial(random),
    nowMs: clock.nowMs(),
    lifetimeMs: issuer.row.notAfterMs - clock.nowMs(),
  }
  const certificate = await buildCertificate(responderSpec(request, issuer.certificate), issuer.key)
  await custody.keep(name, `${kept.trimEnd()}\n${toPem('CERTIFICATE', certificate)}`)
}

/**
 * An issuer in memory has another responder at every start: a token, from which nothing is removed, would be filled by them. A replica of the release
 * before could not use one that is elsewhere.
 */
const responderKey = async ({ core, custody, options }: KeepingParts, { row }: CaSigner): Promise<NewKey> => {
  const place = options.responderKeyPlace ?? null
  if (place === null || row.custody === 'memory' || core.store.unfinishedUpgrade() !== null) return keyHere()
  // One name for each issuer: an attempt that was cut off, or whose issuer could not sign, has made it already.
  const { key } = await findOrMake(referenceAt(place, `muster-responder-${row.id}`), custody.elsewhere)
  return { key, kept: `${key.reference}\n`, custody: custodyOf(key.reference) }
}

/** An issuer from before there were responders gets one, as long as its key is here. */
export const completeResponder = async (parts: AuthorityParts, signer: CaSigner | null): Promise<void> => {
  if (signer === null || parts.custody.has(nameOf(signer.row.id))) return
  await parts.core.store.exclusively(async () => {
    await parts.custody.refresh()
    await keepResponder(parts, signer)
  })
}

export type FoundResponder = ResponderIdentity & { readonly keyIs: 'here' | 'elsewhere' }

/** Null: there is none here. */
export const findResponder = (custody: KeyCustody, issuer: IssuerId): FoundResponder | null => {
  const text = custody.find(nameOf(issuer))
  if (text === null) return null
  const border = text.indexOf('-----BEGIN CERTIFICATE-----')
  const kept = text.slice(0, border)
  const certificate = fromPem('CERTIFICATE', text.slice(border))
  const parsed = certificate === null ? null : parseCertificate(certificate)
  if (certificate === null || parsed?.kind !== 'certificate')
    throw new Error(`the responder kept for issuer ${issuer} has no certificate`)
  const key = signerOfKept(custody.elsewhere, kept, parsed.spki)
  if (key === null) throw new Error(`the key kept for the responder of issuer ${issuer} is not that of its certificate`)
  return { key, certificate, keyIs: isReference(kept) ? 'elsewhere' : 'here' }
}

/** Removes a responder without work: its issuer has ended, or has retired and its last certificate was deleted. */
export const dropEndedResponders = async ({
  custody,
  store,
  nowMs,
}: {
  readonly custody: KeyCustody
  readonly store: Pick<Store, 'get' | 'list'>
  readonly nowMs: number
}): Promise<void> => {
  for (const name of custody.names()) {
    if (name.role !== 'responder') continue
    const issuer = await store.get('issuer', name.id)
    if (issuer === null) continue
    const { retiredAtMs, notAfterMs } = issuer.value
    const isOver = retiredAtMs !== null && !(await hasCertificates(store, name.id))
    if (isOver || notAfterMs <= nowMs) await custody.drop(name)
  }
}

const hasCertificates = async (store: Pick<Store, 'list'>, issuer: IssuerId): Promise<boolean> => {
  const [first] = await store.list('certificate', { after: `${issuer}/`, limit: 1 })
  return first !== undefined && first.value.issuer === issuer
}
