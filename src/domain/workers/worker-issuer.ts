// Who vouches for workers: an issuer of service-account tokens, such as a Kubernetes cluster, and one subject of it. What its workers may
// queue is here as well, so that a change of it applies to all of them at once.

import {
  readOf,
  type Read,
  type Row,
  type RowTypes,
  decided,
  entry,
  forgedWords,
  type Attribution,
  type Decided,
  type MayBeForged,
} from '#domain/core/change.ts'
import { builtIn } from '#domain/core/profile.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { isTaskType, taskTypesListed } from '#domain/core/task-types.ts'
import { namedByWorkers, signedByThem } from '#domain/issuers/named-issuer.ts'
import { isoTime } from '#platform/clock.ts'

/** Where the public keys of the issuer come from. */
export type KeySource =
  /** A JWKS as an operator laid it down: it changes when an operator changes it. */
  | { readonly kind: 'file'; readonly document: string }
  /** `ca`: PEM of the only roots that its server is verified with. */
  | { readonly kind: 'url'; readonly url: string; readonly ca: string }

export type WorkerIssuer = MayBeForged & {
  readonly name: string
  /** Each is compared as a whole: no prefix and no pattern. */
  readonly iss: string
  /** The only audience of its tokens: one that another service takes as well is refused. */
  readonly aud: string
  readonly sub: string
  readonly keys: KeySource
  /** Types of tasks that its workers may queue. */
  readonly types: readonly string[]
  /** On nodes of which vClusters. */
  readonly vclusters: readonly string[]
  /** Who signs the certificates of its workers. Left out: the authority of workers. Rows of releases before 0.7 have none. */
  readonly signedBy?: string
  readonly createdAtMs: number
  readonly createdBy: string
  readonly removedAtMs: number | null
}

export const workerLifetimeMs = 24 * 3_600_000

export const signerOf = ({ signedBy = builtIn }: Pick<WorkerIssuer, 'signedBy'>): string => signedBy

export type WorkerIssuerSettings = Pick<WorkerIssuer, 'iss' | 'aud' | 'sub' | 'keys' | 'types' | 'vclusters'> & {
  readonly signedBy: string
}

/** Every enrollment compares its token with all of them. Several that are added at once may come to a few more. */
const mostWorkerIssuers = 64

export type WorkerIssuerDecided = Decided & { readonly issuer: WorkerIssuer }

export type WorkerIssuerFacts = {
  readonly name: string
  /** Null: there was never one of that name. */
  readonly existing: Row<WorkerIssuer> | null
  /** All that are there now. */
  readonly all: readonly WorkerIssuer[]
  readonly asked: WorkerIssuerSettings
  /** Every outside issuer there is or was. */
  readonly issuers: readonly Row<RowTypes['outside-issuer']>[]
  readonly by: Attribution
  readonly nowMs: number
}

export const decideAddWorkerIssuer = (facts: WorkerIssuerFacts): WorkerIssuerDecided | Refusal => {
  const { name, existing, all, by, nowMs } = facts
  if (existing !== null && existing.value.removedAtMs === null) return refuse('WORKER_ISSUER_EXISTS', name)
  if (all.length >= mostWorkerIssuers)
    return refuse('WORKER_ISSUER_LIMIT', `there are ${all.length}, and at most ${mostWorkerIssuers}`)
  const unfit = unfitSettings(facts)
  if (unfit !== null) return unfit
  const signed = signedByThem([namedByWorkers(name, facts.asked.signedBy, workerLifetimeMs)], facts.issuers)
  if (isRefusal(signed)) return signed
  // Its workers know it by this time: also with a clock that was set back it is not that of the one before.
  const createdAtMs = Math.max(nowMs, existing === null ? 0 : existing.value.createdAtMs + 1)
  const issuer: WorkerIssuer = {
    ...{ name, ...kept(facts.asked), createdAtMs, createdBy: by.actor, removedAtMs: null },
  }
  return written(existing, issuer, entry(by, nowMs, 'worker.issuer_added', {}, said(issuer)), signed)
}

/** Workers of another subject or issuer than it has then are refused from now on. */
export const decideChangeWorkerIssuer = (
  facts: WorkerIssuerFacts & { readonly existing: Row<WorkerIssuer> },
): WorkerIssuerDecided | { readonly kind: 'unchanged'; readonly issuer: WorkerIssuer } | Refusal => {
  const { name, existing, by, nowMs } = facts
  if (existing.value.forged) return refuse('WORKER_ISSUER_NOT_FOUND', `${name}: ${forgedWords}; remove it`)
  if (existing.value.removedAtMs !== null) return refuse('WORKER_ISSUER_NOT_FOUND', name)
  const unfit = unfitSettings(facts)
  if (unfit !== null) return unfit
  const { signedBy: before = builtIn, ...rest } = existing.value
  const { signedBy } = facts.asked
  // Everything else can be changed while that issuer is disabled.
  const named = signedBy === before ? [] : [namedByWorkers(name, signedBy, workerLifetimeMs)]
  const signed = signedByThem(named, facts.issuers)
  if (isRefusal(signed)) return signed
  const issuer: WorkerIssuer = { ...rest, ...kept(facts.asked) }
  const changed = changedFields(existing.value, issuer)
  if (changed.length === 0) return { kind: 'unchanged', issuer: existing.value }
  return written(existing, issuer, entry(by, nowMs, 'worker.issuer_changed', {}, { ...said(issuer), changed }), signed)
}

export const decideRemoveWorkerIssuer = (
  issuer: Row<WorkerIssuer>,
  by: Attribution,
  nowMs: number,
): WorkerIssuerDecided | Refusal => {
  const { name } = issuer.value
  if (issuer.value.removedAtMs !== null) return refuse('WORKER_ISSUER_NOT_FOUND', name)
  const removed: WorkerIssuer = { ...issuer.value, removedAtMs: nowMs }
  return written(issuer, removed, entry(by, nowMs, 'worker.issuer_removed', {}, said(removed)))
}

const unfitSettings = ({ name, existing, asked, all }: WorkerIssuerFacts): Refusal | null => {
  // A token leads to one issuer, or its workers would have the rights of two.
  const same = all.find(
    (one) => one.name !== name && one.iss === asked.iss && one.aud === asked.aud && one.sub === asked.sub,
  )
  if (same !== undefined)
    return refuseField('WORKER_ISSUER_EXISTS', 'sub', `${same.name} has the same issuer, audience and subject`)
  // Releases up to 0.7.0 took any name: an issuer that has such a type keeps it, so that everything else of it can be changed.
  const held = existing === null || existing.value.removedAtMs !== null ? [] : existing.value.types
  const unknown = asked.types.find((type) => !isTaskType(type) && !held.includes(type))
  if (unknown !== undefined)
    return refuseField(
      'REQUEST_INVALID',
      'types',
      `types: ${JSON.stringify(unknown)} is no type of task; there are ${taskTypesListed}`,
    )
  const { keys } = asked
  if (keys.kind === 'file') return null
  const url = URL.canParse(keys.url) ? new URL(keys.url) : null
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.hash !== '')
    return refuseField('REQUEST_INVALID', 'jwks_url', 'jwks_url takes https://HOST[:PORT]/PATH')
  return null
}

const kept = ({ signedBy, ...asked }: WorkerIssuerSettings) => ({
  ...asked,
  ...(signedBy !== builtIn && { signedBy }),
  types: [...new Set(asked.types)].sort(),
  vclusters: [...new Set(asked.vclusters)].sort(),
})

export const changedFields = (before: WorkerIssuer, after: WorkerIssuer): readonly string[] =>
  (['iss', 'aud', 'sub', 'keys', 'types', 'vclusters', 'signedBy'] as const).filter(
    (field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )

const said = ({ name, iss, aud, sub, keys, types, vclusters, signedBy, createdAtMs }: WorkerIssuer) => ({
  ...{ name, iss, aud, sub, types, vclusters },
  ...(signedBy !== undefined && { signed_by: signedBy }),
  keys: keys.kind === 'url' ? keys.url : 'file',
  // With the name: one that is added again under it is another one.
  since: isoTime(createdAtMs),
})

const written = (
  from: Row<WorkerIssuer> | null,
  issuer: WorkerIssuer,
  entryOf: ReturnType<typeof entry>,
  reads: readonly Read[] = [],
): WorkerIssuerDecided => ({
  ...decided({
    reads: [readOf('worker-issuer', issuer.name, from), ...reads],
    writes: [{ put: 'worker-issuer', value: issuer }],
    entries: [entryOf],
  }),
  issuer,
})
