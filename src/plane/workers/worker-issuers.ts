// The worker issuers, held in memory as every replica receives them, and what operators do to them.

import type { Attribution } from '#domain/core/change.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import {
  decideAddWorkerIssuer,
  decideChangeWorkerIssuer,
  decideRemoveWorkerIssuer,
  type KeySource,
  type WorkerIssuer,
  type WorkerIssuerSettings,
} from '#domain/workers/worker-issuer.ts'
import { parseJwks } from '#pki/jwt.ts'
import { allFromPem } from '#pki/pem.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import { everyRow } from '#plane/core/pages.ts'
import { keySourceOf, type ChangeWorkerIssuerRequest } from '#wire/workers/worker-issuer-api.ts'

export type WorkerIssuers = {
  /** Those that are there, in the order of their names. */
  all(): readonly WorkerIssuer[]
  /** Null: there is none of that name now. */
  find(name: string): WorkerIssuer | null
}

export const openWorkerIssuers = async ({ store, feed }: Pick<Core, 'store' | 'feed'>): Promise<WorkerIssuers> => {
  const known = new Map<string, WorkerIssuer>()
  let live: readonly WorkerIssuer[] = []
  const take = (issuer: WorkerIssuer): void => {
    known.set(issuer.name, issuer)
    live = [...known.values()]
      .filter(({ removedAtMs, forged }) => removedAtMs === null && !forged)
      .sort((one, other) => (one.name < other.name ? -1 : 1))
  }
  // Before the rows are read: one that is removed meanwhile is not taken for one that is there.
  const published = new Set<string>()
  feed.subscribe('worker issuers', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'worker-issuer') continue
      published.add(write.value.name)
      take(write.value)
    }
  })
  for await (const issuer of everyRow(store, 'worker-issuer', ({ name }) => name))
    if (!published.has(issuer.name)) take(issuer)
  return { all: () => live, find: (name) => live.find((issuer) => issuer.name === name) ?? null }
}

/** Also those that were removed, and every outside issuer. */
export const readWorkerIssuer = async ({ store }: Pick<Core, 'store'>, name: string) => ({
  existing: await store.get('worker-issuer', name),
  all: (await Array.fromAsync(everyRow(store, 'worker-issuer', (issuer) => issuer.name))).filter(
    ({ removedAtMs }) => removedAtMs === null,
  ),
  issuers: await readIssuers(store),
})

export type Changed = { readonly kind: 'changed'; readonly issuer: WorkerIssuer }

export const addWorkerIssuer = async (
  core: FlowCore,
  name: string,
  asked: WorkerIssuerSettings,
  by: Attribution,
): Promise<Changed | Refusal> => {
  const done = await commitDecision(core, async () =>
    decideAddWorkerIssuer({ name, ...(await readWorkerIssuer(core, name)), asked, by, nowMs: core.clock.nowMs() }),
  )
  return isRefusal(done) ? done : { kind: 'changed', issuer: done.issuer }
}

/** `change`: of what it has now. */
export const changeWorkerIssuer = async (
  core: FlowCore,
  name: string,
  change: (before: WorkerIssuer) => WorkerIssuerSettings,
  by: Attribution,
): Promise<Changed | Refusal> => {
  const done = await commitDecision(core, async () => {
    const { existing, ...others } = await readWorkerIssuer(core, name)
    if (existing === null) return refuse('WORKER_ISSUER_NOT_FOUND', name)
    const asked = change(existing.value)
    return decideChangeWorkerIssuer({ name, existing, ...others, asked, by, nowMs: core.clock.nowMs() })
  })
  return isRefusal(done) ? done : { kind: 'changed', issuer: done.issuer }
}

export const removeWorkerIssuer = async (core: FlowCore, name: string, by: Attribution): Promise<Changed | Refusal> => {
  const done = await commitDecision(core, async () => {
    const existing = await core.store.get('worker-issuer', name)
    if (existing === null) return refuse('WORKER_ISSUER_NOT_FOUND', name)
    return decideRemoveWorkerIssuer(existing, by, core.clock.nowMs())
  })
  return isRefusal(done) ? done : { kind: 'changed', issuer: done.issuer }
}

/** Where its keys come from, as a request or a document says it. */
export const keysIn = (body: Pick<ChangeWorkerIssuerRequest, 'jwks' | 'jwks_url' | 'ca'>): KeySource | Refusal => {
  const keys = keySourceOf(body)
  if (keys === null)
    return refuseField('REQUEST_INVALID', 'jwks', 'its keys are either jwks, or jwks_url together with ca')
  if (keys.kind === 'url')
    return allFromPem('CERTIFICATE', keys.ca) === null
      ? refuseField('REQUEST_INVALID', 'ca', 'ca holds something that is no certificate in PEM')
      : keys
  const parsed = parseJwks(keys.document)
  if (parsed.kind === 'malformed') return refuseField('REQUEST_INVALID', 'jwks', `jwks: ${parsed.why}`)
  return parsed.keys.length === 0
    ? refuseField('REQUEST_INVALID', 'jwks', 'jwks: it has no key for RS256 or ES256 with an id (kid)')
    : keys
}
