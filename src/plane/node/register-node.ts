import type { Attribution, NodeDecided } from '#domain/core/change.ts'
import { hardwareIdentity } from '#domain/core/hardware-identity.ts'
import type { NodeId } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideRegister } from '#domain/enrollment/registration.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type Registration = {
  readonly id: NodeId
  /** Null: the domain's default. */
  readonly profile: string | null
  readonly macs: readonly string[]
  readonly bmcSerial: string | null
}

export const registerNode = async (
  deps: FlowCore,
  asked: Registration,
  by: Attribution,
): Promise<Done<NodeDecided> | Refusal> => {
  const hardware = hardwareIdentity(asked.macs, asked.bmcSerial)
  if ('kind' in hardware) return hardware
  return commitDecision(deps, async () => {
    const name = asked.profile ?? (await domainSettingsRow(deps.store)).value.defaultProfile
    const profile = await deps.store.get('profile', name)
    if (profile === null) return refuse('PROFILE_NOT_FOUND', name)
    const existing = await deps.store.get('node', asked.id)
    const owners = await deps.store.nodesByHardware(hardware)
    return decideRegister({ id: asked.id, profile, hardware, existing, owners, by, nowMs: deps.clock.nowMs() })
  })
}
