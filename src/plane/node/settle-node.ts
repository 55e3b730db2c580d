// An operator says that of two that claim one identity the machine that is connected now is the right one.

import type { Attribution, NodeDecided } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideSettle } from '#domain/identity/settle.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type SettleDeps = FlowCore & { readonly channels: Pick<OpenChannels, 'isConnected'> }

export const settleNode = (
  deps: SettleDeps,
  id: NodeId,
  reason: string,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> =>
  commitDecision(deps, async () => {
    const node = await deps.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const profile = await deps.store.get('profile', node.value.profile)
    if (profile === null) return refuse('PROFILE_NOT_FOUND', node.value.profile)
    const connected = await deps.channels.isConnected(id)
    return decideSettle({ node, profile, connected, reason, by, nowMs: deps.clock.nowMs() })
  })
