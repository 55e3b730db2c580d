// Which nodes are absent. Channels of this replica are known at once; of the others' channels the leader asks the store
// periodically. The count starts again for all nodes when this replica begins to lead, or was behind, or could not ask: no outage
// and no failover makes a node inactive.

import type { Clock } from '#platform/clock.ts'
import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Presence } from './presence.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'

export type Absences = {
  /** Looks, if it is time to. */
  refresh(): Promise<void>
}

export type AbsenceParts = {
  readonly presence: Presence
  readonly sessions: Pick<SessionRegistry, 'of'>
  readonly replicas: Pick<Replicas, 'holds' | 'count' | 'onLeadership'>
}

const everyMs = 3000
/** Alone, this replica sees all there is to see; but another may come and go between two looks. */
const aloneEveryMs = 60_000

export const openAbsences = async (clock: Clock, { presence, sessions, replicas }: AbsenceParts): Promise<Absences> => {
  let lookedMs: number | null = null
  const startAnew = (): void => {
    presence.startAnew()
    lookedMs = null
  }
  const look = async (): Promise<void> => {
    const startedMs = clock.monotonicMs()
    const absent = await replicas.holds.absent()
    presence.awaitOnly(
      absent.filter((node) => sessions.of(node).length === 0),
      startedMs,
    )
    lookedMs = startedMs
  }
  // A replica that does not serve does not lead: its count starts again.
  replicas.onLeadership((fencingToken) => {
    if (fencingToken !== null) startAnew()
  })
  await look()
  return {
    async refresh() {
      const dueMs = replicas.count() > 1 ? everyMs : aloneEveryMs
      if (lookedMs !== null && clock.monotonicMs() - lookedMs < dueMs) return
      try {
        await look()
      } catch (error) {
        startAnew()
        throw error
      }
    },
  }
}
