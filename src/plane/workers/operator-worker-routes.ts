// Workers and their issuers, as operators look after them.

import type { KeyBan } from '#domain/core/certificate.ts'
import type { Row, RowTypes } from '#domain/core/change.ts'
import { isRefusal, refuse } from '#domain/core/refusal.ts'
import { decideRevokeWorker } from '#domain/workers/revoke-worker.ts'
import { workerSlots } from '#domain/workers/worker.ts'
import type { WorkerIssuer, WorkerIssuerSettings } from '#domain/workers/worker-issuer.ts'
import { sortableId } from '#platform/random.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { answer, attributionOf, serve, type CallOf, type Route } from '#plane/http/route.ts'
import { receiptView } from '#wire/revocation/receipt-api.ts'
import {
  settingsOf,
  workerIssuerApi,
  workerIssuerView,
  type ChangeWorkerIssuerRequest,
} from '#wire/workers/worker-issuer-api.ts'
import { workerOperatorApi, workerView } from '#wire/workers/worker-operator-api.ts'
import type { KeySets } from './key-sets.ts'
import {
  addWorkerIssuer,
  changeWorkerIssuer,
  keysIn,
  removeWorkerIssuer,
  type Changed,
  type WorkerIssuers,
} from './worker-issuers.ts'

export type OperatorWorkerParts = {
  readonly issuers: WorkerIssuers
  readonly keySets: KeySets
  readonly receipts: { collect(receipt: RowTypes['receipt']): Promise<RowTypes['receipt']> }
}

const usualPage = 100

export const operatorWorkerRoutes = (core: FlowCore, parts: OperatorWorkerParts): readonly Route[] =>
  serve(workerOperatorApi, {
    list: async (call) => {
      const { issuer, after = null, limit = usualPage } = call.query
      const where = issuer === undefined ? {} : { issuer }
      const rows = await core.store.list('worker', { where, after, limit })
      const last = rows.length < limit ? undefined : rows.at(-1)
      const nowMs = core.clock.nowMs()
      return answer({ workers: rows.map(({ value }) => workerView(value, nowMs)), next: last?.value.id ?? null })
    },
    show: async (call) => {
      const { id } = call.params
      const row = await core.store.get('worker', id)
      return row === null ? refuse('WORKER_NOT_FOUND', id) : answer(workerView(row.value, core.clock.nowMs()))
    },
    revoke: (call) => revoke(core, parts, call),
  })

/** The commit denies; the receipt says which replicas know. */
const revoke = async (
  core: FlowCore,
  { receipts }: OperatorWorkerParts,
  call: CallOf<typeof workerOperatorApi.revoke>,
) => {
  const { store, clock, random } = core
  const { id } = call.params
  const done = await commitDecision(core, async () => {
    const worker = await store.get('worker', id)
    if (worker === null) return refuse('WORKER_NOT_FOUND', id)
    const bans = new Map<string, Row<KeyBan> | null>()
    for (const { spki } of workerSlots(worker.value)) bans.set(spki, await store.get('key-ban', spki))
    const { clockToleranceMs: toleranceMs } = (await domainSettingsRow(store)).value
    const nowMs = clock.nowMs()
    const receiptId = sortableId(nowMs, random)
    const { reason } = call.body
    return decideRevokeWorker({ worker, bans, reason, receiptId, toleranceMs, by: attributionOf(call), nowMs })
  })
  if (isRefusal(done)) return done
  const receipt = await receipts.collect(done.receipt)
  return answer({
    worker: workerView(done.worker, clock.nowMs()),
    receipt: receiptView(receipt, store.replicas.count(), null),
  })
}

export const operatorWorkerIssuerRoutes = (core: FlowCore, parts: OperatorWorkerParts): readonly Route[] => {
  const { issuers, keySets } = parts
  const shown = async (changed: Changed) =>
    workerIssuerView(changed.issuer, changed.issuer.removedAtMs === null ? await keySets.look(changed.issuer) : noKeys)
  return serve(workerIssuerApi, {
    list: async () =>
      answer({ worker_issuers: issuers.all().map((issuer) => workerIssuerView(issuer, keySets.stateOf(issuer))) }),
    show: async (call) => {
      const issuer = issuers.find(call.params.name)
      if (issuer === null) return refuse('WORKER_ISSUER_NOT_FOUND', call.params.name)
      return answer(workerIssuerView(issuer, await keySets.look(issuer)))
    },
    add: async (call) => {
      const keys = keysIn(call.body)
      if (isRefusal(keys)) return keys
      const done = await addWorkerIssuer(core, call.body.name, settingsOf(call.body, keys), attributionOf(call))
      return isRefusal(done) ? done : answer(await shown(done), 201)
    },
    set: async (call) => {
      const change = changeIn(call.body)
      if (isRefusal(change)) return change
      const done = await changeWorkerIssuer(core, call.params.name, change, attributionOf(call))
      return isRefusal(done) ? done : answer(await shown(done))
    },
    remove: async (call) => {
      const done = await removeWorkerIssuer(core, call.params.name, attributionOf(call))
      return isRefusal(done) ? done : answer(await shown(done))
    },
  })
}

const noKeys = { keys: 0, fetchedAtMs: null, trouble: null }

const changeIn = (body: ChangeWorkerIssuerRequest) => {
  const saysKeys = body.jwks !== undefined || body.jwks_url !== undefined || body.ca !== undefined
  const keys = saysKeys ? keysIn(body) : null
  if (isRefusal(keys)) return keys
  return (before: WorkerIssuer): WorkerIssuerSettings => ({
    iss: body.iss ?? before.iss,
    aud: body.aud ?? before.aud,
    sub: body.sub ?? before.sub,
    keys: keys ?? before.keys,
    types: body.types ?? before.types,
    vclusters: body.vclusters ?? before.vclusters,
  })
}
