// A certificate for a worker, at its start and at every renewal: whether it gets one, what is ordered, and what is written once it is
// signed. Names come from its issuer and its token; only the public key is taken from the request.

import { isoTime } from '#platform/clock.ts'
import {
  isFromFuture,
  placeOrder,
  slotOf,
  type CertificateRow,
  type IssuedCertificate,
  type KeyBan,
  type SigningOrder,
} from '#domain/core/certificate.ts'
import {
  entry,
  forgedWords,
  readOf,
  type Attribution,
  type Change,
  type ChangePart,
  type Read,
  type Row,
  type RowTypes,
  type Write,
} from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { IssuerId, Slot } from '#domain/core/node.ts'
import { workerIdOf, type WorkerPrincipal } from '#domain/core/principal.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { issuanceStopped, type IssueFacts, type KeyInRequest } from '#domain/identity/node-certificate.ts'
import { denialOfSlot, isOfIssuer, workerHolder, workerSlots, type Worker } from './worker.ts'
import { workerLifetimeMs, type WorkerIssuer } from './worker-issuer.ts'
import type { WorkerToken } from './worker-token.ts'

export type WorkerFacts = {
  readonly issuer: Row<WorkerIssuer>
  readonly token: WorkerToken
  /** Null: its first certificate, or one in the place of what it had. */
  readonly renewing: WorkerPrincipal | null
  readonly worker: Row<Worker> | null
  readonly domain: Row<DomainSettings>
  readonly key: IssueFacts['key']
  readonly keyBan: Row<KeyBan> | null
  readonly keyClaim: Row<RowTypes['key-claim']> | null
  /** To an outside issuer, open for this worker, whatever its key; null: none is. */
  readonly ordered: Row<RowTypes['order']> | null
  /** Authorities of workers that were withdrawn. */
  readonly withdrawn: readonly IssuerId[]
  readonly orderId: string
  readonly by: Attribution
  readonly nowMs: number
}

export type WorkerAdmitted = {
  readonly kind: 'admitted'
  readonly facts: WorkerFacts
  readonly key: KeyInRequest
  readonly order: SigningOrder
}

/** Asked before for the same key: the answer is the certificate that was issued then. */
export type WorkerRepeated = {
  readonly kind: 'repeat'
  readonly slot: Slot
  /** Null: its token is on record. Else it is answered once this is committed: from then on the token is bound to the key. */
  readonly binding: Change | null
}

export const decideWorker = (facts: WorkerFacts): WorkerAdmitted | WorkerRepeated | Refusal => {
  const { issuer, token, renewing, domain, key } = facts
  const stopped = issuanceStopped(domain.value, renewing === null ? 'new' : 'known')
  if (stopped !== null) return stopped
  if (issuer.value.forged || issuer.value.removedAtMs !== null)
    return refuse('WORKER_TOKEN_INVALID', 'its issuer was removed')
  const worker = facts.worker?.value ?? null
  if (worker !== null && worker.revoked !== null) return refuse('WORKER_REVOKED', worker.revoked.reason)
  if (worker?.forged) return refuse('WORKER_REVOKED', forgedWords)
  if (renewing !== null) {
    if (worker === null || worker.id !== renewing.id || !isOfIssuer(worker, issuer.value))
      return refuse('WORKER_TOKEN_OF_ANOTHER', `the certificate is of ${renewing.id}`)
    if (!workerSlots(worker).some(({ serial }) => serial === renewing.credential.serial))
      return refuse('SERIAL_MISMATCH')
  }
  if (key.kind === 'malformed') return refuseField('CSR_INVALID', 'csr', key.why)
  if (key.keyType === 'p384')
    return {
      ...refuseField('CSR_INVALID', 'csr', 'workers have keys of type ed25519 or p256'),
      keyTypes: workerKeyTypes,
    }
  const seen = worker?.tokens.find(({ hash }) => hash === token.hash)
  if (seen !== undefined && seen.spki !== key.spkiHash) return refuse('WORKER_TOKEN_USED')
  const open = facts.ordered?.value
  if (open?.token === token.hash && open.spki !== key.spkiHash) return refuse('WORKER_TOKEN_USED')
  // Of another issuer under the same name it has nothing that could be repeated: that authenticates no worker any more.
  const repeated = worker === null || !isOfIssuer(worker, issuer.value) ? null : slotToRepeat(facts, worker, key)
  if (worker !== null && repeated !== null) {
    if (seen !== undefined) return { kind: 'repeat', slot: repeated, binding: null }
    return tokenLimit(facts) ?? { kind: 'repeat', slot: repeated, binding: tokenBound(facts, worker, key) }
  }
  return keyUnfit(facts, key) ?? tokenLimit(facts) ?? { kind: 'admitted', facts, key, order: orderOf(facts, key) }
}

export const workerKeyTypes = ['ed25519', 'p256'] as const

/**
 * At an enrollment: the certificate of this key, while more than half of its life is left. At a renewal: the successor of the certificate
 * that the caller came with, whose answer was lost.
 */
const slotToRepeat = (
  { renewing, withdrawn, domain, nowMs }: WorkerFacts,
  { current }: Worker,
  key: KeyInRequest,
): Slot | null => {
  if (current.spki !== key.spkiHash || withdrawn.includes(current.issuer)) return null
  if (isFromFuture(current.issuedAtMs, nowMs, domain.value.clockToleranceMs)) return null
  const halfMs = current.issuedAtMs + (current.notAfterMs - current.issuedAtMs) / 2
  const isFresh = nowMs < halfMs
  return isFresh && (renewing === null || renewing.credential.serial !== current.serial) ? current : null
}

/** A worker may keep its key; no other worker and no node may have it. */
const keyUnfit = ({ keyBan, keyClaim, issuer, token }: WorkerFacts, key: KeyInRequest): Refusal | null => {
  if (keyBan !== null) return refuse('KEY_BLOCKED')
  const own = workerHolder(workerIdOf(issuer.value.name, token.instance))
  const isTaken = keyClaim !== null && keyClaim.value.holders.some(({ node }) => node !== own)
  return isTaken ? refuse('KEY_IN_USE', `SHA256:${key.spkiHash}`) : null
}

/** A pod that may ask its cluster for tokens must not make its row grow. Projected tokens are renewed a few times a day. */
const mostTokens = 48

const tokenLimit = (facts: WorkerFacts): Refusal | null =>
  heldTokens(facts).length < mostTokens
    ? null
    : { ...refuse('RATE_LIMITED', `it has used ${mostTokens} tokens that still hold`), retryAfterMs: 60_000 }

const heldTokens = ({ worker, token, domain, nowMs }: WorkerFacts): Worker['tokens'] =>
  (worker?.value.tokens ?? []).filter(
    ({ hash, untilMs }) => hash !== token.hash && untilMs + domain.value.clockToleranceMs > nowMs,
  )

/** A token that is not on record could be brought with another key afterwards, by a process that has read it meanwhile. */
const tokenBound = (facts: WorkerFacts, worker: Worker, key: KeyInRequest): Change => {
  const { issuer, token, by, nowMs } = facts
  const body = { worker: worker.id, worker_issuer: worker.issuer, key: `SHA256:${key.spkiHash}` }
  return {
    reads: [readOf('worker', worker.id, facts.worker), readOf('worker-issuer', worker.issuer, issuer)],
    writes: [{ put: 'worker', value: { ...worker, tokens: [...heldTokens(facts), seenToken(token, key)] } }],
    entries: [entry(by, nowMs, 'worker.token_bound', {}, body)],
  }
}

const seenToken = ({ hash, expiresAtMs }: WorkerToken, { spkiHash }: KeyInRequest): Worker['tokens'][number] => ({
  hash,
  spki: spkiHash,
  untilMs: expiresAtMs,
})

export type WorkerLeafFacts = Pick<SigningOrder, 'id' | 'publicKey' | 'issuedAtMs' | 'lifetimeMs'> & {
  readonly workerIssuer: string
  readonly instance: string
  /** Its name. */
  readonly domain: string
}

export const orderWorkerCertificate = (facts: WorkerLeafFacts): SigningOrder => {
  const { id, workerIssuer, instance, domain, publicKey, issuedAtMs, lifetimeMs } = facts
  return placeOrder({
    id,
    subject: { cn: `worker-provisioning-${instance}`, o: domain.slice(0, 64), ou: 'workers' },
    uriSans: [],
    dnsSans: [],
    ipSans: [],
    usage: 'client',
    publicKey,
    issuedAtMs,
    lifetimeMs,
    aiaUrl: null,
    cdpUrl: null,
    for: { kind: 'worker', worker: workerIdOf(workerIssuer, instance) },
  })
}

const orderOf = ({ orderId: id, issuer, token, domain, nowMs }: WorkerFacts, key: KeyInRequest): SigningOrder =>
  orderWorkerCertificate({
    ...{ id, workerIssuer: issuer.value.name, instance: token.instance, domain: domain.value.name },
    ...{ publicKey: key.spki, issuedAtMs: nowMs, lifetimeMs: workerLifetimeMs },
  })

/** A revocation, a halt, a ban or the end of its issuer must beat a certificate that it did not touch. */
const reliedOn = ({ issuer, token, worker, domain, keyClaim }: WorkerFacts, spki: string): readonly Read[] => [
  readOf('worker', workerIdOf(issuer.value.name, token.instance), worker),
  readOf('worker-issuer', issuer.value.name, issuer),
  readOf('domain', 'domain', domain),
  readOf('key-ban', spki, null),
  readOf('key-claim', spki, keyClaim),
]

const keyClaimed = ({ issuer, token, keyClaim, nowMs }: WorkerFacts, spki: string): readonly Write[] => {
  const node = workerHolder(workerIdOf(issuer.value.name, token.instance))
  const claim = keyClaim?.value ?? { spki, holders: [] }
  if (claim.holders.some((holder) => holder.node === node)) return []
  return [{ put: 'key-claim', value: { ...claim, holders: [...claim.holders, { node, use: 'tls', sinceMs: nowMs }] } }]
}

/** What is committed with the order before an outside issuer is asked. The token is in the order: it is bound to the key from then on. */
export const workerIntended = (
  { facts }: WorkerAdmitted,
  spki: string,
): Required<Pick<ChangePart, 'reads' | 'writes'>> => ({
  reads: reliedOn(facts, spki),
  writes: keyClaimed(facts, spki),
})

/** A new enrollment ends what the worker had: the pod has lost its key, or another process has it. */
export const workerIssued = (
  { facts, key }: WorkerAdmitted,
  issued: IssuedCertificate,
): { readonly change: Change; readonly worker: Worker } => {
  const { issuer, token, renewing, domain, by, nowMs } = facts
  const before = facts.worker?.value ?? null
  const { name, iss, sub, createdAtMs: issuerSinceMs } = issuer.value
  const id = workerIdOf(name, token.instance)
  const certificate: CertificateRow = {
    ...issued,
    subject: { kind: 'worker', worker: id },
    renews: renewing?.credential.serial ?? null,
  }
  const worker: Worker = {
    ...{ id, issuer: name, instance: token.instance, iss, sub, issuerSinceMs },
    enrolledAtMs: renewing === null ? nowMs : (before?.enrolledAtMs ?? nowMs),
    current: slotOf(certificate),
    former: renewing === null ? null : (before?.current ?? null),
    tokens: [...heldTokens(facts), seenToken(token, key)],
    revoked: null,
  }
  const kept = new Set(workerSlots(worker).map(({ serial }) => serial))
  const ended = before === null ? [] : workerSlots(before).filter(({ serial }) => !kept.has(serial))
  const toleranceMs = domain.value.clockToleranceMs
  const why = renewing === null ? 'its worker enrolled again' : 'its worker renewed twice since'
  const body = {
    ...{ worker: id, worker_issuer: name, instance: token.instance, subject: sub },
    key: `SHA256:${issued.spki}`,
    fingerprint: `SHA256:${issued.sha256}`,
    renews: certificate.renews,
    not_after: isoTime(issued.notAfterMs),
    order: issued.order,
  }
  const about = { issuer: issued.issuer, serial: issued.serial }
  const change: Change = {
    reads: reliedOn(facts, issued.spki),
    writes: [
      { put: 'worker', value: worker },
      { put: 'certificate', value: certificate },
      ...keyClaimed(facts, issued.spki),
      ...ended.map((slot) => denialOfSlot(slot, { atMs: nowMs, why, reason: 'superseded', toleranceMs })),
    ],
    entries: [entry(by, nowMs, renewing === null ? 'worker.enrolled' : 'worker.renewed', about, body)],
  }
  return { change, worker }
}
