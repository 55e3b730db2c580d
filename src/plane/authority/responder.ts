// Who answers for an issuing CA by OCSP: a key of its own, certified by that CA before it signs anything else, and living
// as long. It is kept where every plane of the domain finds it, so that the certificates of an issuer in memory can still
// be asked about when the plane that held its key is gone.

import { responderSpec } from '#pki/authority-certificates.ts'
import { buildCertificate } from '#pki/certificate.ts'
import { generateKey, loadPrivateKey } from '#pki/keys.ts'
import type { ResponderIdentity } from '#pki/ocsp-response.ts'
import { fromPem, toPem } from '#pki/pem.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { AuthorityParts } from './authority-state.ts'
import { type CaSigner, newSerial } from './ca-signer.ts'
import type { KeyCustody, KeyName } from '#plane/keys/key-custody.ts'

const nameOf = (issuer: IssuerId): KeyName => ({ role: 'responder', id: issuer })

/** Durable when it resolves. Does nothing where there is one; where replicas share keys, only for an issuer of one's own. */
export const keepResponder = async (
  { core: { clock, random }, custody, options }: Pick<AuthorityParts, 'core' | 'custody' | 'options'>,
  issuer: CaSigner,
): Promise<void> => {
  const name = nameOf(issuer.row.id)
  if (issuer.row.role !== 'issuing' || custody.has(name)) return
  const key = generateKey('p256')
  const request = {
    domain: options.domain,
    spki: key.spki,
    serial: newSerial(random),
    nowMs: clock.nowMs(),
    lifetimeMs: issuer.row.notAfterMs - clock.nowMs(),
  }
  const certificate = await buildCertificate(responderSpec(request, issuer.certificate), issuer.key)
  await custody.keep(name, key.pkcs8Pem() + toPem('CERTIFICATE', certificate))
}

/** An issuer from before there were responders gets one, as long as its key is here. */
export const completeResponder = async (parts: AuthorityParts, signer: CaSigner | null): Promise<void> => {
  if (signer === null || parts.custody.has(nameOf(signer.row.id))) return
  await parts.core.store.exclusively(async () => {
    await parts.custody.refresh()
    await keepResponder(parts, signer)
  })
}

/** Null: there is none here. */
export const findResponder = (custody: KeyCustody, issuer: IssuerId): ResponderIdentity | null => {
  const text = custody.find(nameOf(issuer))
  if (text === null) return null
  const border = text.indexOf('-----BEGIN CERTIFICATE-----')
  const certificate = fromPem('CERTIFICATE', text.slice(border))
  if (certificate === null) throw new Error(`the responder kept for issuer ${issuer} has no certificate`)
  return { key: loadPrivateKey(text.slice(0, border)), certificate }
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
