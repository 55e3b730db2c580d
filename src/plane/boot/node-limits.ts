// What machines may cost this replica. The node and the recovery listener share it: an anonymous caller is not heard twice as
// often for calling both.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Core } from '#plane/core/core.ts'
import { challengeLimits } from '#plane/identity/identity-routes.ts'
import { openAdmissionQueue, type AdmissionQueue } from '#plane/limits/admission-queue.ts'
import { openNodePace, type NodePace } from '#plane/limits/node-pace.ts'
import { openStrangersBudget, sharedLimits, type StrangersBudget } from '#plane/limits/strangers-budget.ts'

export type NodeLimits = {
  /** Of callers who have proved nothing. */
  readonly strangers: StrangersBudget
  /** Of callers who have proved who they are: one of them that keeps failing must not use up what anonymous callers may. */
  readonly acquaintances: StrangersBudget
  readonly challenges: StrangersBudget
  readonly admission: AdmissionQueue
  /** How much one node may make the plane write. */
  readonly pace: NodePace
}

/** Enrollments in progress at once; the rest is told when to come back. */
const admissionCapacity = 1024

export const openNodeLimits = (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  settings: () => DomainSettings,
): NodeLimits => {
  const replicas = (): number => store.replicas.count()
  return {
    strangers: openStrangersBudget(clock, () => {
      const { strangersPerMinute: perMinute, strangersPerMinutePerSource: perMinutePerSource } = settings()
      return sharedLimits({ perMinute, perMinutePerSource }, replicas())
    }),
    // They share it, whatever address a gateway gives all of them.
    acquaintances: openStrangersBudget(clock, () => {
      const { strangersPerMinute: perMinute } = settings()
      return sharedLimits({ perMinute, perMinutePerSource: perMinute }, replicas())
    }),
    // A balancer may send all of one site to one replica: only what all callers cost is shared out.
    challenges: openStrangersBudget(clock, () => ({
      ...sharedLimits(challengeLimits, replicas()),
      perMinutePerSource: challengeLimits.perMinutePerSource,
    })),
    admission: openAdmissionQueue(clock, admissionCapacity),
    pace: openNodePace(clock, replicas),
  }
}
