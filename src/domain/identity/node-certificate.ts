// What every decision to give a node a certificate has in common, whether it enrolls, renews or recovers: the facts, whether
// anything is issued now, which keys are certified, the order (names from the registry, lifetime from the profile, only the
// key from the request), and the rows that are written once it is signed.

import { isoTime } from '#platform/clock.ts'
import {
  type CertificateRow,
  type IssuedCertificate,
  type KeyBan,
  placeOrder,
  type SigningOrder,
} from '#domain/core/certificate.ts'
import { readOf, type Change, type Read, type Row, type Attribution, type ChangePart } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { EntryBody } from '#domain/core/journal-entry.ts'
import type { IssuerId, Node, NodeId, Recovery, Slot } from '#domain/core/node.ts'
import type { KeyType, Profile } from '#domain/core/profile.ts'
import type { RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { type FormerNode, readsOfAbsent } from '#domain/core/purged-node.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { nodeUri } from '#domain/core/subject-uri.ts'
import { certifiedKeyClaimed, keysClaimed, type KeyClaimFacts, type KeyInUseFacts } from './key-claim.ts'

/** The only thing taken from a certificate request. */
export type KeyInRequest = {
  readonly kind: 'key'
  readonly keyType: KeyType
  readonly spki: Uint8Array
  readonly spkiHash: string
}

export type IssueFacts = {
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
  readonly key: KeyInRequest | { readonly kind: 'malformed'; readonly why: string }
  readonly keyBan: Row<KeyBan> | null
  readonly keyClaims: KeyClaimFacts
  /** Withdrawn authorities: a certificate that they signed is not handed out again. */
  readonly withdrawn: readonly IssuerId[]
  readonly orderId: string
  readonly by: Attribution
  readonly nowMs: number
}

/** The decision to sign. */
export type Admitted<F extends IssueFacts = IssueFacts> = {
  readonly kind: 'admitted'
  readonly facts: F
  /** The node as it was; one that a token of the domain is about to register starts here. */
  readonly before: Node
  readonly epoch: number
  readonly order: SigningOrder
}

/** Asked before with the same key: the answer is the certificate that was issued then, and nothing is signed twice. */
export type Repeated = {
  readonly kind: 'repeat'
  readonly facts: Pick<IssueFacts, 'profile' | 'domain'>
  readonly node: Node
  readonly slot: Slot
  /** Uses up a token that the request came with. */
  readonly spends: Change | null
}

/** What a decision writes once its certificate is signed. */
export type Recorded = { readonly change: Change; readonly node: Node }

/** Nothing of the caller's is at fault, and nothing is used up. */
const stoppedForMs = 60_000

/**
 * Whether anything is issued now; null: go on. Nothing is issued from a store in doubt, nor while an operator has halted
 * issuance. `known`: what a node that is in gets next, and the same answer to a request that was answered before; these go on
 * during a halt where the operator has said so.
 */
export const issuanceStopped = ({ continuity, issuance }: DomainSettings, asked: 'known' | 'new'): Refusal | null => {
  if (continuity.doubt !== null) return { ...refuse('STORE_IN_DOUBT'), retryAfterMs: stoppedForMs }
  if (issuance.kind === 'open' || (issuance.renewals && asked === 'known')) return null
  return { ...refuse('ISSUANCE_HALTED', issuance.reason), retryAfterMs: stoppedForMs }
}

/** `recovery`: what is registered; `register`: what is asked to be registered with it. */
export const keyUnfit = (
  { keyBan, profile }: Pick<IssueFacts, 'keyBan' | 'profile'>,
  key: KeyInRequest,
  { recovery, register }: { readonly recovery: Recovery | null; readonly register: RecoveryRegistrationFacts | null },
): Refusal | null => {
  if (keyBan !== null) return refuse('KEY_BLOCKED')
  const recoveryKeys = [recovery?.credential, register].map((one) => (one?.kind === 'key' ? one.spki : null))
  if (recoveryKeys.includes(key.spkiHash)) {
    return refuseField('CSR_INVALID', 'csr', 'a recovery key is never certified: it has to be another key')
  }
  const allowed = profile.value.certificate.keyTypes
  if (allowed.includes(key.keyType)) return null
  const said = `profile ${profile.value.name} allows keys of type ${allowed.join(', ')}`
  return { ...refuseField('CSR_INVALID', 'csr', said), keyTypes: allowed }
}

export const admit = <F extends IssueFacts>(
  facts: F,
  key: KeyInRequest,
  before: Node,
  epoch: number,
): Admitted<F> | Refusal => {
  const { orderId: id, profile, domain, nowMs } = facts
  const node = before.id
  const order = orderNodeCertificate({ id, node, epoch, profile: profile.value, domain: domain.value, key, nowMs })
  return order.kind === 'refused' ? order : { kind: 'admitted', facts, before, epoch, order: order.order }
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
      uriSans: certificate.uriSan ? [nodeUri(facts.domain.name, facts.node)] : [],
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

/** `renews`: the serial of the certificate that asked for this one, at a renewal. */
export const certificateOf = (
  { before, epoch }: Pick<Admitted, 'before' | 'epoch'>,
  issued: IssuedCertificate,
  renews: string | null,
): CertificateRow => ({ ...issued, subject: { kind: 'node', node: before.id, epoch }, renews })

export type Intended = Required<Pick<ChangePart, 'reads' | 'writes'>>

type Before = Row<Node> | FormerNode

/** A revocation, a halt or a ban must beat an issuance that it did not touch. */
const reliedOn = ({ profile, domain }: IssueFacts, node: NodeId, before: Before, spki: string): readonly Read[] => [
  ...('key' in before ? readsOfAbsent(node, before) : [readOf('node', node, before)]),
  readOf('profile', profile.value.name, profile),
  readOf('domain', 'domain', domain),
  readOf('key-ban', spki, null),
]

/**
 * What is committed with the order before an outside issuer is asked: it relies on all that the certificate will rely on, claims the key,
 * and writes no node.
 */
export const intended = (
  { facts }: Pick<Admitted, 'facts'>,
  before: Before,
  keys: KeyInUseFacts,
  extra: Intended,
): Intended => {
  const claim = certifiedKeyClaimed({ ...keys, nowMs: facts.nowMs })
  return {
    reads: [...reliedOn(facts, keys.nodeId, before, keys.spki), ...extra.reads, ...claim.reads],
    writes: [...extra.writes, ...claim.writes],
  }
}

/**
 * The rows that go with every certificate, and what the decision itself adds. The commit relies on profile, domain and the absence of a ban, too.
 */
export const recorded = (
  { facts }: Pick<Admitted, 'facts'>,
  { before, node, certificate }: { before: Before; node: Node; certificate: CertificateRow },
  keys: KeyInUseFacts,
  extra: Required<Pick<ChangePart, 'reads' | 'writes'>> & Pick<Change, 'entries'>,
): Recorded => {
  const claims = keysClaimed({ ...keys, recovery: node.recovery, nowMs: facts.nowMs })
  const reads = [...reliedOn(facts, node.id, before, certificate.spki), ...extra.reads, ...claims.reads]
  const writes: Change['writes'] = [
    { put: 'node', value: node },
    { put: 'certificate', value: certificate },
    ...extra.writes,
    ...claims.writes,
  ]
  return { node, change: { reads, writes, entries: extra.entries } }
}

/** What the journal says of every certificate. */
export const certificateWords = (certificate: IssuedCertificate): EntryBody => ({
  mtls_cert_fingerprint: `SHA256:${certificate.sha256}`,
  key: `SHA256:${certificate.spki}`,
  order: certificate.order,
  not_after: isoTime(certificate.notAfterMs),
})
