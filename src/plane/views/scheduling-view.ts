import type { HardwareProfile } from '#domain/hardware-profile.ts'
import type { Node } from '#domain/node.ts'
import { schedulingOf } from '#domain/scheduling.ts'
import { skuOf } from '#domain/sku.ts'
import type { SchedulingView } from '#wire/scheduling-api.ts'

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
