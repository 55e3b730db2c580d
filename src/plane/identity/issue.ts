// What enrollment, renewal and recovery have in common on the pipeline that hands out certificates (issuers/issue-certificate.ts), and what they
// answer. They differ in what they decide and in what they write; both are in domain/.

import { markedWord } from '#domain/core/plane-mark.ts'
import { certificateKey, type IssuedCertificate, slotsOf } from '#domain/core/certificate.ts'
import { withPart, type ChangePart } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import type { NextBearerHash, RecoveryRegistrationFacts } from '#domain/core/recovery-credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { KeyClaimFacts } from '#domain/identity/key-claim.ts'
import type { Admitted, Intended, IssueFacts, Recorded, Repeated } from '#domain/identity/node-certificate.ts'
import { ordererOf } from '#domain/issuers/order-changes.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { SaidRoots } from '#plane/issuers/choose-issuer.ts'
import { issueCertificate, type OutsideTerms } from '#plane/issuers/issue-certificate.ts'
import { openOrderOf } from '#plane/issuers/order-steps.ts'
import type { OutsideOrders } from '#plane/issuers/outside-orders.ts'
import type { Attempt } from '#plane/issuers/outside-signer.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { sortableId } from '#platform/random.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { toPem } from '#pki/pem.ts'
import { agentProfile, endpointSet, withdrawnPart, type PlaneUrls } from '#plane/core/configuration.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { commitIssued } from '#plane/core/issued-certificate.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { outsideRootsField, understoodFields } from '#wire/enrollment/enroll-api.ts'
import type { RenewResponse } from '#wire/identity/identity-api.ts'

/** What the pipeline signs with. */
export type Signers = {
  readonly issuer: Issuer
  readonly recovery: Pick<RecoveryAuthority, 'bearerFor'>
  readonly orders: Pick<OutsideOrders, 'choose' | 'place' | 'stillSigns'>
}

export type IssueRequest<A extends Admitted> = {
  /**
   * Reads and decides; called again whenever the commit lost a race, and when an outside issuer has signed. It also settles verdicts that
   * issue nothing: it raises an alert, or fences a second holder, before the refusal is answered.
   */
  decide(): Promise<A | Repeated | Refusal | 'lost-race' | 'decide-again'>
  /** The rate limit of what was admitted, asked before anything is signed. */
  limit(admission: A): Promise<Refusal | null>
  /** What is committed with an order to an outside issuer. */
  intend(admission: A, spki: string): Intended
  /** What it says about the roots of issuers. */
  readonly roots: SaidRoots
  /** The request as it came, PEM, and what it asks for: outside issuers see it. */
  readonly csr: string
  readonly purpose: Attempt['purpose']
  /** What is written with the certificate. */
  record(admission: A, issued: IssuedCertificate, nextBearerHash: NextBearerHash): Promise<Recorded>
}

/** What a caller is answered with, the first time or once more. */
export type Issued = {
  readonly kind: 'issued'
  readonly node: Node
  readonly profile: Profile
  readonly domain: DomainSettings
  readonly certificate: HandedOut
}

/** `der`: base64; the answer makes the chain of it. */
export type HandedOut = Pick<IssuedCertificate, 'issuer' | 'serial' | 'spki' | 'der'>

export const issue = <A extends Admitted>(
  core: FlowCore,
  signers: Signers,
  request: IssueRequest<A>,
): Promise<Issued | Refusal> => {
  const { issuer, orders } = signers
  return issueCertificate<A, Issued>(orders, {
    csr: request.csr,
    async decide() {
      const verdict = await request.decide()
      if (typeof verdict === 'string' || verdict.kind !== 'repeat') return verdict
      return { kind: 'answered', answer: () => repeated(core, verdict) }
    },
    limit: (admission) => request.limit(admission),
    choose: ({ facts, before }, away) =>
      orders.choose(facts.profile.value, { node: before.id, roots: request.roots, away }),
    stillSigns: ({ facts }, name) => orders.stillSigns(facts.profile.value, name),
    sign: (order) => issuer.sign(order),
    openOrder: ({ facts }) => facts.keyClaims.ordered,
    outside: (admission, spki) => outsideTerms(request, admission, spki),
    handOut: (admission, signed, part) => handOut(core, signers, request, admission, signed, part),
  })
}

const outsideTerms = <A extends Admitted>(
  { intend, purpose }: IssueRequest<A>,
  admission: A,
  spki: string,
): OutsideTerms => {
  const { name, certificate } = admission.facts.profile.value
  const intent = intend(admission, spki)
  return {
    ...{ kind: name, purpose, intent, slots: ordererOf(admission.before).slots },
    token: intent.reads.find(({ row }) => row === 'token')?.key ?? null,
    leastLifetimeMs: certificate.minLifetimeMs ?? certificate.lifetimeMs / 2,
  }
}

const handOut = async <A extends Admitted>(
  core: FlowCore,
  { issuer, recovery }: Signers,
  request: IssueRequest<A>,
  admission: A,
  signed: IssuedCertificate,
  part: ChangePart,
): Promise<Issued | 'lost-race'> => {
  const hash = nextBearerHash(recovery, admission.before, signed.spki)
  const { change, node } = await request.record(admission, signed, hash)
  const outcome = await commitIssued(core, issuer, signed, withPart(change, part))
  return outcome === 'lost-race' ? outcome : issued(admission, node, signed)
}

const repeated = async (core: FlowCore, verdict: Repeated): Promise<Issued | Refusal | 'lost-race'> => {
  const { slot, spends } = verdict
  const spent = spends === null ? null : await commitOnce(core, spends)
  if (spent === 'lost-race') return spent
  const stored = await core.store.get('certificate', certificateKey(slot.issuer, slot.serial))
  if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
  return issued(verdict, verdict.node, stored.value)
}

const issued = (
  { facts: { profile, domain } }: { readonly facts: Pick<IssueFacts, 'profile' | 'domain'> },
  node: Node,
  certificate: HandedOut,
): Issued => ({ kind: 'issued', node, profile: profile.value, domain: domain.value, certificate })

/**
 * Read before the node: a claim that the node's own commit wrote is then never newer than the node's row, and a request that
 * is repeated at the same time is not taken for one that brings an earlier key. An order that is completed meanwhile is then seen in the
 * node as well.
 */
export const readKeyClaims = async (
  store: Pick<Store, 'get' | 'list'>,
  node: NodeId,
  key: IssueFacts['key'],
  register: RecoveryRegistrationFacts | null,
): Promise<KeyClaimFacts> => {
  const recoveryKey = register?.kind === 'key' ? register.spki : null
  const [certified, registered, registeredBan] = await Promise.all([
    key.kind === 'key' ? store.get('key-claim', key.spkiHash) : null,
    recoveryKey === null ? null : store.get('key-claim', recoveryKey),
    recoveryKey === null ? null : store.get('key-ban', recoveryKey),
  ])
  const ordered = certified === null ? null : await openOrderOf(store, node)
  return { certified, registered, registeredBan, ordered }
}

/** What every decision to issue is given besides the node and what the request brings. */
export const readIssueFacts = async (
  { store, clock, random }: FlowCore,
  issuer: Issuer,
  key: IssueFacts['key'],
): Promise<Pick<IssueFacts, 'key' | 'keyBan' | 'withdrawn' | 'orderId' | 'nowMs'>> => {
  const nowMs = clock.nowMs()
  return {
    key,
    keyBan: key.kind === 'key' ? await store.get('key-ban', key.spkiHash) : null,
    withdrawn: issuer.withdrawnIssuers(),
    orderId: sortableId(nowMs, random),
    nowMs,
  }
}

type CounterSigner = {
  readonly recovery: Pick<RecoveryAuthority, 'sealCounter' | 'bearerFor'>
  readonly domainName: string
}

/**
 * What goes out with every certificate besides: the signed counter and, in compatibility mode, the bearer token. Both are made
 * from what is in the store, so that a repeated request is answered with the same ones.
 */
export const counterAndToken = (
  signer: CounterSigner,
  node: Node,
  handedOut: Pick<HandedOut, 'serial' | 'spki'>,
): { readonly counter: string; readonly recoveryToken: string | null } => {
  const count = countOf(node, handedOut.serial)
  return {
    counter: signCounter(signer, node, count),
    recoveryToken: tokenIfCurrent(signer, node, { node: node.id, counter: count, spki: handedOut.spki }),
  }
}

/** Null: the node does not recover by tokens, or this one has been rotated away since and is of no use to any caller. */
const tokenIfCurrent = (
  { recovery }: CounterSigner,
  node: Node,
  about: Parameters<RecoveryAuthority['bearerFor']>[0],
): string | null => {
  const registered = node.recovery === null ? null : node.recovery.credential
  if (registered?.kind !== 'bearer') return null
  const token = recovery.bearerFor(about)
  return registered.hash === sha256Hex(token) ? token : null
}

/** Sealed, so that a caller can only present a counter that it was given (ruling 6). request-proofs.ts reads it. */
const signCounter = (
  { recovery, domainName }: CounterSigner,
  { id, epoch }: Pick<Node, 'id' | 'epoch'>,
  counter: number,
): string =>
  formatStatement('counter', { domain: domainName, node: id, epoch, counter }, (bytes) => recovery.sealCounter(bytes))

const nextBearerHash =
  (recovery: Signers['recovery'], { id: node, counter }: Pick<Node, 'id' | 'counter'>, spki: string): NextBearerHash =>
  () =>
    sha256Hex(recovery.bearerFor({ node, counter: counter + 1, spki }))

/** The newest certificate has the newest count; any other was issued before it. */
const countOf = (node: Node, serial: string): number => {
  const slots = slotsOf(node)
  const newest = slots === null ? null : (slots.pending ?? slots.current)
  return newest === null || newest.serial === serial ? node.counter : node.counter - 1
}

export type AnswerParts = {
  readonly issuer: Issuer
  readonly recovery: RecoveryAuthority
  readonly domainName: string
  readonly urls: () => PlaneUrls
}

export const understoodBy = ({ marked }: Pick<PlaneUrls, 'marked'>): string[] => [
  ...understoodFields,
  // Neither while replicas of the release before run: a request may reach one of them.
  ...(marked ? [markedWord, outsideRootsField] : []),
]

/** What a machine is given with every certificate, whichever way it got it. */
export const identityAnswer = (
  clock: Clock,
  parts: AnswerParts,
  { node, profile, domain, certificate }: Issued,
): RenewResponse => {
  const { counter, recoveryToken } = counterAndToken(parts, node, certificate)
  return {
    certificate_chain: pemChain(parts.issuer, certificate),
    certificate_root: parts.issuer.rootOf(certificate.issuer),
    roots: [...parts.issuer.roots()],
    ...withdrawnPart(parts.issuer),
    ...issuerRootsPart(parts.issuer),
    profile: agentProfile(profile),
    endpoints: endpointSet(parts.urls()),
    server_time: isoTime(clock.nowMs()),
    understands: understoodBy(parts.urls()),
    counter,
    recovery_trust: { roots: [...parts.recovery.roots()], statement_keys: [...parts.recovery.statementKeys()] },
    ...(recoveryToken !== null && { recovery_token: recoveryToken }),
    recovery_registered: node.recovery !== null,
    ...(node.recovery?.credential.kind === 'key' && { recovery_key: node.recovery.credential.spki }),
    clock_tolerance_ms: domain.clockToleranceMs,
  }
}

const issuerRootsPart = (issuer: Pick<Issuer, 'issuerRoots'>): Pick<RenewResponse, 'issuer_roots'> => {
  const { revision, roots } = issuer.issuerRoots()
  return revision === 0 ? {} : { issuer_roots: { revision, roots: [...roots] } }
}

/** The leaf, then its issuers, without the root. */
const pemChain = (issuer: Pick<Issuer, 'chainOf'>, { issuer: signedBy, der }: HandedOut): string =>
  [Buffer.from(der, 'base64'), ...issuer.chainOf(signedBy)].map((part) => toPem('CERTIFICATE', part)).join('')
