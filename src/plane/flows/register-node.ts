import type { Attribution } from '#domain/decision.ts'
import { hardwareIdentity } from '#domain/hardware-identity.ts'
import type { NodeDecided } from '#domain/node-change.ts'
import type { NodeId } from '#domain/node.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import { decideRegister } from '#domain/registration.ts'
import type { Store } from '#plane/store/store.ts'
import type { Clock } from '#platform/clock.ts'
import { commitDecision, type CommitDeps, type Done } from './commit-decision.ts'
import { domainSettingsRow } from './domain-settings-row.ts'

export type RegisterDeps = CommitDeps & { readonly store: Store; readonly clock: Clock }

export type Registration = {
  readonly id: NodeId
  /** Null: the domain's default. */
  readonly profile: string | null
  readonly macs: readonly string[]
  readonly bmcSerial: string | null
}

export const registerNode = async (
  deps: RegisterDeps,
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
