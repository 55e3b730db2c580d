// What follows when a call of a machine is refused, on the node listener and on the recovery listener alike.

import type { Alerting } from '#plane/alerts/alerting.ts'
import type { Core } from '#plane/core/core.ts'
import { recordRefusal } from '#plane/core/record-refusal.ts'
import type { MachineCalls } from '#plane/http/http-app.ts'
import type { Metrics } from '#plane/metrics/open-metrics.ts'

type RefusalParts = {
  readonly metrics: Pick<Metrics, 'refused'>
  readonly alerting: Pick<Alerting, 'onRefusal'>
  readonly limits: Parameters<typeof recordRefusal>[1]
}

export const followRefusals =
  (core: Core, { metrics, alerting, limits }: RefusalParts): MachineCalls['onRefusal'] =>
  (refused) => {
    metrics.refused(refused.refusal.code, refused.path)
    alerting.onRefusal(refused)
    recordRefusal(core, limits, refused).catch((error: unknown) =>
      core.log.warn({ err: error }, 'a refusal was not journaled'),
    )
  }
