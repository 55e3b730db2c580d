// Workers and their issuers, as operators look after them.

import { isRefusal, refuse } from '#domain/core/refusal.ts'
import { signerOf, type WorkerIssuer, type WorkerIssuerSettings } from '#domain/workers/worker-issuer.ts'
import { withStore, type FlowCore } from '#plane/core/core.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
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
import { revokeWorker, type RevokeWorkerParts } from './revoke-worker.ts'
import {
  addWorkerIssuer,
  changeWorkerIssuer,
  keysIn,
  removeWorkerIssuer,
  type Changed,
  type WorkerIssuers,
} from './worker-issuers.ts'

export type OperatorWorkerParts = RevokeWorkerParts & {
  readonly issuers: WorkerIssuers
  readonly keySets: KeySets
  readonly cutOffs: Pick<PendingCutOffs, 'run'>
}

const usualPage = 100

export const operatorWorkerRoutes = (core: FlowCore, parts: OperatorWorkerParts): readonly Route[] =>
  serve(workerOperatorApi, {
    list: async (call) => {
      const { issuer, after = null, limit = usualPage } = call.query
      const where = issuer === undefined ? {} : { issuer }
      const rows = await core.store.list('worker', { where, after, limit })
      // Those of an issuer that was removed are listed.
      if (issuer !== undefined && rows.length === 0 && (await core.store.get('worker-issuer', issuer)) === null)
        return refuse('WORKER_ISSUER_NOT_FOUND', issuer)
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

const revoke = async (
  core: FlowCore,
  { receipts, cutOffs }: OperatorWorkerParts,
  call: CallOf<typeof workerOperatorApi.revoke>,
) => {
  const { id: worker } = call.params
  const wanted = { reason: call.body.reason, by: attributionOf(call) }
  const done = await cutOffs.run({ kind: 'revoke-worker', worker, ...wanted }, (store) =>
    revokeWorker(withStore(core, store), { receipts }, worker, wanted),
  )
  if (isRefusal(done)) return done
  return answer({
    worker: workerView(done.worker, core.clock.nowMs()),
    receipt: receiptView(done.receipt, core.store.replicas.count(), null),
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
    signedBy: body.signed_by ?? signerOf(before),
  })
}
