// The part of the plane that machines come back through. It shares with the node plane what callers may cost: a stranger
// is not heard twice as often for knocking at two doors.

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Balancers } from '#platform/proxied-server.ts'
import type { Random } from '#platform/random.ts'
import type { Timers } from '#platform/timers.ts'
import { recordRefusal, type RefusalDeps } from '#plane/core/record-refusal.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { troubleOf, type Refused } from '#plane/http/http-reply.ts'
import { openRecoveryListener, type RecoveryListener } from '#plane/http/recovery-listener.ts'
import { recoveryRoutes, type RecoveryRouteDeps } from '#plane/recovery/recovery-routes.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { TurnedAway } from './turned-away.ts'

export type RecoveryPlaneDeps = RecoveryRouteDeps &
  RefusalDeps & {
    readonly store: Store
    readonly clock: Clock
    readonly timers: Timers
    readonly random: Random
    readonly log: Log
    readonly recovery: RecoveryAuthority
    readonly correlation: () => string
    readonly turnedAway: TurnedAway
    readonly connections: number
    readonly balancers: Balancers | null
    readonly onRefusal: (refused: Refused) => void
  }

export type RecoveryPlane = { readonly listener: RecoveryListener }

export const openRecoveryPlane = async (deps: RecoveryPlaneDeps): Promise<RecoveryPlane> => {
  const { store, recovery, log } = deps
  const listener = await openRecoveryListener({
    routes: recoveryRoutes(deps),
    correlation: deps.correlation,
    timers: deps.timers,
    log,
    identity: recovery.serverIdentity(),
    limits: deps.turnedAway.limits('recovery', { connections: deps.connections, perCaller: null }),
    onAborted(source) {
      deps.turnedAway.aborted('recovery', source)
      deps.strangers.charge(source)
    },
    balancers: deps.balancers,
    trouble: () => troubleOf(store),
    standing: () => store.replicas.standing(),
    onRefusal(refused) {
      deps.onRefusal(refused)
      recordRefusal(deps, refused).catch((error: unknown) => log.warn({ err: error }, 'a refusal was not journaled'))
    },
  })
  recovery.onServerIdentity((identity) => listener.replaceIdentity(identity))
  return { listener }
}
