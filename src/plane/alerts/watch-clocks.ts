// Alerts about planes whose clocks are too far from the database's. Such a plane decides nothing, so another one, which
// leads, raises them from what every replica writes down with its lease.

import type { WantedAlert } from '#domain/alerts/alert-decisions.ts'
import { durationWords } from '#domain/core/duration-words.ts'
import type { Replica } from '#plane/store/contract/replicas.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { settleAlert, type SettleDeps } from './settle-alert.ts'
import type { StandingAlerts } from './standing-alerts.ts'

export type WatchClocksDeps = SettleDeps & {
  readonly store: Pick<Store, 'get' | 'commit' | 'replicas'>
  readonly standing: StandingAlerts
  readonly clockToleranceMs: number
}

export const watchClocks = async (deps: WatchClocksDeps): Promise<void> => {
  const leased = await deps.store.replicas.leased()
  const wanted = leased.flatMap((replica) => alertOfClock(replica, deps.clockToleranceMs))
  const over = [...deps.standing.all()]
    .filter(({ kind }) => kind === 'clock_off')
    .filter(({ subject }) => !wanted.some((one) => one.subject === subject))
  for (const about of over) await settleAlert(deps, async () => ({ about, wanted: null, reliedOn: [] }))
  for (const about of wanted) await settleAlert(deps, async () => ({ about, wanted: about, reliedOn: [] }))
}

const alertOfClock = ({ name, clockOffsetMs }: Replica, toleranceMs: number): WantedAlert[] => {
  if (clockOffsetMs === null || Math.abs(clockOffsetMs) <= toleranceMs) return []
  const off = `${durationWords(Math.abs(clockOffsetMs))} ${clockOffsetMs > 0 ? 'ahead of' : 'behind'}`
  const reason = `the clock of the plane ${name} is ${off} the database's: it decides nothing until that is set right`
  return [{ kind: 'clock_off', subject: name, node: null, severity: 'critical', reason, sinceMs: null }]
}
