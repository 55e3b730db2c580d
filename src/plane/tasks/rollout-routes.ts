// Rollouts, as operators look at them and act on them.

import { isRefusal, refuse } from '#domain/core/refusal.ts'
import type { Rollout } from '#domain/tasks/rollout.ts'
import type { Arrivals } from '#plane/core/arrivals.ts'
import type { Core } from '#plane/core/core.ts'
import { answer, attributionOf, serve, type CallOf, type Route } from '#plane/http/route.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { rolloutApi, rolloutView, type RolloutListQuery, type RolloutView } from '#wire/tasks/rollout-api.ts'
import { cancelRollout, resumeRollout } from './rollouts.ts'

export const operatorRolloutRoutes = (core: Core, { arrivals }: { readonly arrivals: Arrivals }): readonly Route[] => {
  const { store } = core
  return serve(rolloutApi, {
    list: (call) => listRollouts(store, call.query),
    show: (call) => showRollout(store, arrivals, call),
    resume: async (call) => {
      const done = await resumeRollout(core, call.params.id, attributionOf(call))
      return isRefusal(done) ? done : answer(await viewOf(store, done.rollout))
    },
    cancel: async (call) => {
      const { reason = 'cancelled by an operator' } = call.body
      const done = await cancelRollout(core, call.params.id, reason, attributionOf(call))
      return isRefusal(done) ? done : answer(await viewOf(store, done.rollout))
    },
  })
}

const viewOf = async (store: Store, rollout: Rollout) => rolloutView(rollout, await store.countTasksOf(rollout.id))

const usualPage = 100

export const listRollouts = async (store: Store, query: RolloutListQuery) => {
  const { after = null, limit = usualPage } = query
  const rows = await store.list('task-rollout', { after, limit })
  const last = rows.length < limit ? undefined : rows.at(-1)
  const rollouts: RolloutView[] = []
  // One count at a time: each may go over 10,000 tasks, and a hundred at once would hold every connection to the database.
  for (const { value } of rows) rollouts.push(await viewOf(store, value))
  return answer({ rollouts, next: last === undefined ? null : last.value.id })
}

/** With `wait_ms`: answered when the leader or an operator has changed it, or the time is over. */
const showRollout = async (store: Store, arrivals: Arrivals, call: CallOf<typeof rolloutApi.show>) => {
  const { id } = call.params
  const { wait_ms: waitMs = 0 } = call.query
  const before = await store.get('task-rollout', id)
  if (before === null) return refuse('ROLLOUT_NOT_FOUND', id)
  const isOver = before.value.state.kind !== 'running'
  if (waitMs === 0 || isOver) return answer(await viewOf(store, before.value))
  const arrival = arrivals.expect(({ type, body }) => type.startsWith('rollout.') && body['rollout'] === id)
  if (arrival.kind === 'refused') return arrival
  try {
    // Registered first, then read: it may have changed in between.
    const now = await store.get('task-rollout', id)
    if (now?.version === before.version) await arrival.within(waitMs)
    const found = await store.get('task-rollout', id)
    return found === null ? refuse('ROLLOUT_NOT_FOUND', id) : answer(await viewOf(store, found.value))
  } finally {
    arrival.cancel()
  }
}
