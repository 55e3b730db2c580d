import type { HardwareProfile } from '#domain/core/hardware-profile.ts'
import type { Node } from '#domain/core/node.ts'
import { schedulingOf } from '#domain/fleet/scheduling.ts'
import { skuOf } from '#domain/fleet/sku.ts'
import type { SchedulingView } from '#wire/fleet/scheduling-api.ts'

export const schedulingView = (node: Node, profiles: readonly HardwareProfile[]): SchedulingView => {
  const { state, reasons } = schedulingOf(node)
  return {
    node: node.id,
    membership: node.membership.kind,
    vcluster: node.assignment,
    state,
    reasons: [...reasons],
    drain: node.drain,
    allocations: node.allocations,
    sku: skuOf(node.machine, profiles).sku,
  }
}
