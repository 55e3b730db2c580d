// A certificate for a worker, at its start and at every renewal: verify its token, read, decide, sign, commit, answer.

import { certificateKey } from '#domain/core/certificate.ts'
import { withPart, type Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { actorOf, workerIdOf, type WorkerPrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { workerKind } from '#domain/issuers/named-issuer.ts'
import { orderedFor } from '#domain/issuers/order.ts'
import {
  decideWorker,
  workerIntended,
  workerIssued,
  type WorkerAdmitted,
  type WorkerFacts,
} from '#domain/workers/issue-worker.ts'
import { signerOf, type WorkerIssuer } from '#domain/workers/worker-issuer.ts'
import { workerSlots } from '#domain/workers/worker.ts'
import { issuerOfClaims, judgeWorkerToken, type WorkerToken } from '#domain/workers/worker-token.ts'
import { parseJwt, verifyJwt, type JwtKey, type ParsedJwt } from '#pki/jwt.ts'
import { toPem } from '#pki/pem.ts'
import type { VerifySignature } from '#pki/signature.ts'
import { isoTime } from '#platform/clock.ts'
import { sortableId } from '#platform/random.ts'
import type { WorkersAuthority } from '#plane/authority/workers-authority.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { commitIssued, keyInRequest } from '#plane/core/issued-certificate.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { byOneIssuer, issueCertificate, leastLifetimeMs, type Answered } from '#plane/issuers/issue-certificate.ts'
import { openOrderOf } from '#plane/issuers/order-steps.ts'
import type { OutsideOrders } from '#plane/issuers/outside-orders.ts'
import type { AdmissionQueue } from '#plane/limits/admission-queue.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import type { WorkerCertificate } from '#wire/workers/worker-api.ts'
import type { KeySets } from './key-sets.ts'
import type { WorkerIssuers } from './worker-issuers.ts'

export type EnrollWorkerParts = {
  /** It also knows what hangs under outside issuers. */
  readonly workers: Pick<WorkersAuthority, 'sign' | 'chainOf' | 'withdrawnIssuers' | 'rowRead' | 'lookAgain'>
  readonly orders: Pick<OutsideOrders, 'place'>
  readonly verifyProof: VerifySignature
  readonly roots: Issuer['roots']
  readonly issuers: WorkerIssuers
  readonly keySets: KeySets
  readonly anonymousBudget: CallerBudget
  readonly admission: AdmissionQueue
  readonly writeLimit: WriteLimit
}

export type WorkerCall = {
  readonly token: string
  readonly csr: string
  readonly source: string
  readonly correlation: string
}

/**
 * Anonymous until its token is verified, and no failing caller may keep a worker with a good token out (ruling 2). So every token is
 * verified, also where the budget of anonymous callers is used up: that costs less than the handshake before it. What fails is charged.
 */
export const enrollWorker = async (
  core: FlowCore,
  parts: EnrollWorkerParts,
  call: WorkerCall,
): Promise<WorkerCertificate | Refusal> => {
  const { anonymousBudget, admission } = parts
  // Outside of the queue: a key set may be waited for, and places are for those who can be served.
  const claimed = await claimedIssuer(parts, call.token)
  const leave = isRefusal(claimed) ? () => {} : admission.enter()
  if (typeof leave !== 'function') return leave
  try {
    const verified = isRefusal(claimed) ? claimed : await verifyToken(core, claimed)
    if (!isRefusal(verified)) return await issueWorker(core, parts, call, verified, null)
    const hasRoom = anonymousBudget.room(call.source)
    // Not the fault of the caller, and charged all the same: whether the token is one is not known yet.
    if (hasRoom && verified.code === 'WORKER_KEYS_AWAY') anonymousBudget.charge(call.source)
    return hasRoom ? verified : { ...refuse('RATE_LIMITED'), retryAfterMs: anonymousBudget.retryAfterMs() }
  } finally {
    leave()
  }
}

/** With its certificate and a token that holds now: a stolen certificate alone is over within a day. */
export const renewWorker = async (
  core: FlowCore,
  parts: EnrollWorkerParts,
  principal: WorkerPrincipal,
  call: WorkerCall,
): Promise<WorkerCertificate | Refusal> => {
  const claimed = await claimedIssuer(parts, call.token)
  const verified = isRefusal(claimed) ? claimed : await verifyToken(core, claimed)
  return isRefusal(verified) ? verified : issueWorker(core, parts, call, verified, principal)
}

/** Whose the token says it is, and the key that has to have signed it. */
type Claimed = {
  readonly kind: 'claimed'
  readonly issuer: WorkerIssuer
  readonly parsed: ParsedJwt
  readonly key: JwtKey
}

const claimedIssuer = async (
  { issuers, keySets }: Pick<EnrollWorkerParts, 'issuers' | 'keySets'>,
  text: string,
): Promise<Claimed | Refusal> => {
  const parsed = parseJwt(text)
  if (parsed.kind === 'malformed') return refuse('WORKER_TOKEN_INVALID', parsed.why)
  const issuer = issuerOfClaims(parsed.claims, issuers.all())
  if (issuer === null)
    return refuse('WORKER_TOKEN_INVALID', 'no worker issuer has its issuer, its only audience and its subject')
  const key = await keySets.keyOf(issuer, parsed.keyId)
  if (key === 'away') return { ...refuse('WORKER_KEYS_AWAY', issuer.name), retryAfterMs: keysAgainMs }
  if (key === 'unknown') return refuse('WORKER_TOKEN_INVALID', 'it is signed by a key that its issuer does not have')
  return { kind: 'claimed', issuer, parsed, key }
}

type Verified = { readonly kind: 'verified'; readonly issuer: WorkerIssuer; readonly token: WorkerToken }

const verifyToken = async (core: FlowCore, { issuer, parsed, key }: Claimed): Promise<Verified | Refusal> => {
  if (!verifyJwt(parsed, key)) return refuse('WORKER_TOKEN_INVALID', 'its signature is not by the key that it names')
  const { clockToleranceMs } = (await domainSettingsRow(core.store)).value
  const token = judgeWorkerToken(parsed, clockToleranceMs, core.clock.nowMs())
  return isRefusal(token) ? token : { kind: 'verified', issuer, token }
}

const keysAgainMs = 30_000

const issueWorker = async (
  core: FlowCore,
  parts: EnrollWorkerParts,
  call: WorkerCall,
  verified: Verified,
  renewing: WorkerPrincipal | null,
): Promise<WorkerCertificate | Refusal> => {
  const id = workerIdOf(verified.issuer.name, verified.token.instance)
  const about = { actor: `worker:${id}` }
  const done = await issueCertificate<WorkerAdmitted, WorkerCertificate>(parts.orders, {
    csr: call.csr,
    decide: () => decide(core, parts, call, verified, renewing),
    limit: async () => parts.writeLimit.take(about.actor),
    ...byOneIssuer<WorkerAdmitted>(({ facts }) => signerOf(facts.issuer.value)),
    sign: async (order) =>
      (await parts.workers.sign(order)) ?? {
        ...refuse('UNAVAILABLE', 'no authority can sign for workers now: muster ca show'),
        retryAfterMs: 5000,
      },
    openOrder: ({ facts }) => facts.ordered,
    outside: (admission, spki) => ({
      kind: workerKind(admission.facts.issuer.value.name),
      purpose: renewing === null ? 'enrollment' : 'renewal',
      intent: workerIntended(admission, spki),
      slots: admission.facts.worker === null ? [] : workerSlots(admission.facts.worker.value),
      token: admission.facts.token.hash,
      leastLifetimeMs: leastLifetimeMs(admission.order),
    }),
    async handOut(admission, signed, part) {
      const change = withPart(workerIssued(admission, signed).change, part)
      const outcome = await commitIssued(core, parts.workers, signed, change)
      return outcome === 'lost-race' ? outcome : answerOf(core, parts, id, signed)
    },
  })
  return isRefusal(done) ? { ...done, about } : done
}

const decide = async (
  core: FlowCore,
  parts: EnrollWorkerParts,
  call: WorkerCall,
  verified: Verified,
  renewing: WorkerPrincipal | null,
): Promise<WorkerAdmitted | Answered<WorkerCertificate> | Refusal | 'lost-race'> => {
  const facts = await readFacts(core, parts, call, verified, renewing)
  if (isRefusal(facts)) return facts
  const verdict = decideWorker(facts)
  if (verdict.kind !== 'repeat') return verdict
  const { slot, binding } = verdict
  const id = workerIdOf(verified.issuer.name, verified.token.instance)
  if (binding !== null) {
    const limited = parts.writeLimit.take(`worker:${id}`)
    if (limited !== null) return limited
    if ((await commitOnce(core, binding)) === 'lost-race') return 'lost-race'
  }
  const { issuer, serial } = slot
  const stored = await core.store.get('certificate', certificateKey(issuer, serial))
  if (stored === null) return refuse('UNAVAILABLE', 'the certificate issued before is no longer on record')
  return { kind: 'answered', answer: async () => answerOf(core, parts, id, stored.value) }
}

const readFacts = async (
  { store, clock, random }: FlowCore,
  { workers, verifyProof }: EnrollWorkerParts,
  call: WorkerCall,
  { issuer: verifiedBy, token }: Verified,
  renewing: WorkerPrincipal | null,
): Promise<WorkerFacts | Refusal> => {
  const key = await keyInRequest(verifyProof, call.csr)
  const spki = key.kind === 'key' ? key.spkiHash : null
  const id = workerIdOf(verifiedBy.name, token.instance)
  // Before the worker: one that is completed meanwhile is then seen in its row as well.
  const ordered = await openOrderOf(store, orderedFor({ kind: 'worker', worker: id }))
  const [keyClaim, keyBan, worker, issuer] = await Promise.all([
    spki === null ? null : store.get('key-claim', spki),
    spki === null ? null : store.get('key-ban', spki),
    store.get('worker', id),
    store.get('worker-issuer', verifiedBy.name),
  ])
  const domain: Row<DomainSettings> = await domainSettingsRow(store)
  // It was changed since its token was verified: the token would have to be verified anew.
  if (issuer === null || !isSame(issuer.value, verifiedBy))
    return refuse('WORKER_TOKEN_INVALID', 'its issuer has changed')
  const nowMs = clock.nowMs()
  return {
    ...{ issuer, token, renewing, worker, domain, key, keyBan, keyClaim, ordered },
    withdrawn: workers.withdrawnIssuers(),
    orderId: sortableId(nowMs, random),
    by: {
      actor: renewing === null ? `worker:${id}` : actorOf(renewing),
      source: call.source,
      correlation: call.correlation,
    },
    nowMs,
  }
}

const isSame = (one: WorkerIssuer, other: WorkerIssuer): boolean =>
  one.removedAtMs === null &&
  one.iss === other.iss &&
  one.aud === other.aud &&
  one.sub === other.sub &&
  JSON.stringify(one.keys) === JSON.stringify(other.keys)

const answerOf = (
  { clock }: FlowCore,
  { workers, roots }: EnrollWorkerParts,
  id: string,
  { issuer, der, notAfterMs }: { readonly issuer: string; readonly der: string; readonly notAfterMs: number },
): WorkerCertificate => ({
  worker_id: id,
  certificate_chain: [Buffer.from(der, 'base64'), ...workers.chainOf(issuer)]
    .map((part) => toPem('CERTIFICATE', part))
    .join(''),
  roots: [...roots()],
  not_after: isoTime(notAfterMs),
  server_time: isoTime(clock.nowMs()),
})
