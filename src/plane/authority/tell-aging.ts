// Authorities that grow old and that only a person can replace are told to the journal, at most once a day and by one
// plane.

import { entry } from '#domain/core/decision.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { agingNow } from './authority-view.ts'
import type { AuthorityDeps, AuthorityState } from './authority-state.ts'
import { byItself } from './issuer-entries.ts'

const day = 24 * 3600 * 1000

export const tellAging = async (deps: AuthorityDeps, state: AuthorityState): Promise<void> => {
  const warnings = agingNow(deps, state)
  const [first] = warnings
  const fence = deps.store.replicas.leadership()
  if (first === undefined || fence === null) return
  const nowMs = deps.clock.nowMs()
  if (state.agingToldAtMs !== null && nowMs - state.agingToldAtMs < day) return
  // Whoever led before may have told it since.
  state.agingToldAtMs = await lastToldAtMs(deps)
  if (nowMs - state.agingToldAtMs < day) return

  const body = { warnings: warnings.map(({ text }) => text) }
  const told = entry(byItself, nowMs, 'ca.aging', { issuer: first.issuer }, body)
  const outcome = await commitOnce(deps, { reads: [], writes: [], entries: [told] }, fence)
  if (outcome === 'lost-race') return
  state.agingToldAtMs = nowMs
  deps.log.warn(body, 'a certificate authority needs a person')
}

const lastToldAtMs = async ({ store }: AuthorityDeps): Promise<number> => {
  const [last] = await store.journal.read({ after: null, last: 1, limit: 1, node: null, type: 'ca.aging' })
  return last === undefined ? 0 : last.entry.atMs
}
