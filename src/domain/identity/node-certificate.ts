// The order for a node's certificate: names from the registry, lifetime from the profile, only the key from the request.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { NodeId } from '#domain/core/node.ts'
import { placeOrder, type SigningOrder } from '#domain/core/order.ts'
import type { KeyType, Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

/** The only thing taken from a certificate request. */
export type KeyInRequest = {
  readonly kind: 'key'
  readonly keyType: KeyType
  readonly spki: Uint8Array
  readonly spkiHash: string
}

export type NodeCertificateFacts = {
  readonly id: string
  readonly node: NodeId
  readonly epoch: number
  readonly profile: Profile
  readonly domain: DomainSettings
  readonly key: KeyInRequest
  readonly nowMs: number
}

/** X.520's upper bound for each of CN, O and OU. */
const longestName = 64

/** The profile's templates filled in from the registry, or why a certificate could not carry them. */
export const subjectOf = (
  node: NodeId,
  profile: Profile,
  domain: DomainSettings,
): { readonly kind: 'subject'; readonly cn: string; readonly o: string; readonly ou: string } | Refusal => {
  const fill = (template: string): string => template.replaceAll('{id}', node).replaceAll('{domain}', domain.name)
  const { cn, o, ou } = profile.certificate.subject
  const subject = { cn: fill(cn), o: fill(o), ou: fill(ou) }
  const tooLong = Object.values(subject).find((name) => name.length > longestName)
  if (tooLong === undefined) return { kind: 'subject', ...subject }
  return refuse(
    'PROFILE_INVALID',
    `the name ${tooLong} is longer than the ${longestName} characters a certificate takes`,
  )
}

export const orderNodeCertificate = (facts: NodeCertificateFacts): { kind: 'order'; order: SigningOrder } | Refusal => {
  const { certificate } = facts.profile
  const subject = subjectOf(facts.node, facts.profile, facts.domain)
  if (subject.kind === 'refused') return subject
  return {
    kind: 'order',
    order: placeOrder({
      id: facts.id,
      subject: { cn: subject.cn, o: subject.o, ou: subject.ou },
      uriSans: certificate.uriSan ? [`spiffe://${facts.domain.name}/node/${facts.node}`] : [],
      dnsSans: [],
      ipSans: [],
      usage: 'client',
      publicKey: facts.key.spki,
      issuedAtMs: facts.nowMs,
      lifetimeMs: certificate.lifetimeMs,
      aiaUrl: certificate.aiaUrl,
      cdpUrl: certificate.cdpUrl,
      for: { kind: 'node', node: facts.node, epoch: facts.epoch },
    }),
  }
}
