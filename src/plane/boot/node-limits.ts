// What machines may cost this replica. The node and the recovery listener share it: an anonymous caller does not get twice the
// budget for calling both.

import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Core } from '#plane/core/core.ts'
import { challengeLimits } from '#plane/identity/identity-routes.ts'
import { openAdmissionQueue, type AdmissionQueue } from '#plane/limits/admission-queue.ts'
import { openWriteLimit, type WriteLimit } from '#plane/limits/write-limit.ts'
import { openWorkerQueueLimit, type WorkerQueueLimit } from '#plane/workers/worker-task-routes.ts'
import { openCallerBudget, sharedLimits, type CallerBudget } from '#plane/limits/caller-budget.ts'

export type NodeLimits = {
  /** Of callers who have proved nothing. */
  readonly anonymousBudget: CallerBudget
  /** Of callers who have proved who they are: one of them that keeps failing must not use up what anonymous callers may. */
  readonly authenticatedBudget: CallerBudget
  readonly challenges: CallerBudget
  readonly admission: AdmissionQueue
  /** How much one node may make the plane write. */
  readonly writeLimit: WriteLimit
  /** How many tasks workers may queue. */
  readonly queueLimit: WorkerQueueLimit
}

/** Enrollments in progress at once; the others get a retry time. */
const admissionCapacity = 1024

export const openNodeLimits = (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  settings: () => DomainSettings,
): NodeLimits => {
  const replicas = (): number => store.replicas.count()
  return {
    anonymousBudget: openCallerBudget(clock, () => {
      const { strangersPerMinute: perMinute, strangersPerMinutePerSource: perMinutePerSource } = settings()
      return sharedLimits({ perMinute, perMinutePerSource }, replicas())
    }),
    // All of them share it, also if a gateway gives them one address.
    authenticatedBudget: openCallerBudget(clock, () => {
      const { strangersPerMinute: perMinute } = settings()
      return sharedLimits({ perMinute, perMinutePerSource: perMinute }, replicas())
    }),
    // A balancer may send all of one site to one replica: only what all callers cost is shared out.
    challenges: openCallerBudget(clock, () => ({
      ...sharedLimits(challengeLimits, replicas()),
      perMinutePerSource: challengeLimits.perMinutePerSource,
    })),
    admission: openAdmissionQueue(clock, admissionCapacity),
    writeLimit: openWriteLimit(clock, replicas),
    queueLimit: openWorkerQueueLimit(clock, replicas),
  }
}
