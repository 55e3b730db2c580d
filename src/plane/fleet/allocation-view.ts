import type { Allocation } from '#domain/fleet/allocation.ts'
import { isoTime } from '#platform/clock.ts'
import type { AllocationView } from '#wire/fleet/allocation-api.ts'

export const allocationView = ({ id, node, vcluster, owner, state, ...made }: Allocation): AllocationView => ({
  id,
  node,
  vcluster,
  owner,
  state: state.kind,
  created_at: isoTime(made.createdAtMs),
  created_by: made.createdBy,
  why: state.kind === 'running' ? null : state.why,
  changed_at: state.kind === 'running' ? null : isoTime(state.atMs),
  released_by: state.kind === 'released' ? state.by : null,
  forced: state.kind === 'released' && state.forced,
})
