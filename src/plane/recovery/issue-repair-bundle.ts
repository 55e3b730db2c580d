// An operator's emergency credential for one machine. Making it puts the node in quarantine, so it is held off meanwhile
// like any other withdrawal.

import { releaseAll } from '#domain/fleet/allocation.ts'
import { boundedText, mergeParts, type Attribution } from '#domain/core/change.ts'
import type { NodeId, Repair } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { decideRepairBundle } from '#domain/recovery/repair.ts'
import type { Cursor } from '#plane/store/contract/store.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { sortableId } from '#platform/random.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import { everyProgramEnded } from '#plane/core/programs-of-node.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type RepairIssued = {
  readonly kind: 'issued'
  readonly domainName: string
  readonly repair: Repair
  /** Shown once; only its hash is kept. */
  readonly secret: string
  readonly entry: Cursor
}

/** Long enough to carry it to a machine by hand. */
const validMs = 3_600_000

export const issueRepairBundle = (
  core: FlowCore,
  channels: Pick<OpenChannels, 'pauseWhile'>,
  id: NodeId,
  reason: string,
  by: Attribution,
): Promise<RepairIssued | Refusal> => channels.pauseWhile(id, () => issue(core, id, reason, by))

const issue = async (core: FlowCore, id: NodeId, reason: string, by: Attribution): Promise<RepairIssued | Refusal> => {
  const secret = `repair_${core.random.bytes(32).toString('base64url')}`
  const bundle = { id: sortableId(core.clock.nowMs(), core.random), hash: sha256Hex(secret) }
  const done = await commitDecision(core, async () => {
    const node = await core.store.get('node', id)
    if (node === null) return refuse('NODE_NOT_FOUND', id)
    const nowMs = core.clock.nowMs()
    const domain = await domainSettingsRow(core.store)
    const allocations = await liveAllocations(core.store, id)
    const why = `its node was quarantined: to be repaired: ${reason}`
    const toleranceMs = domain.value.clockToleranceMs
    const ending = { why: boundedText(why), reason: 'unspecified', toleranceMs, by, nowMs } as const
    const extraParts = mergeParts([
      releaseAll({ node, allocations, why, by, nowMs }),
      await everyProgramEnded(core.store, id, ending),
    ])
    return decideRepairBundle({ ...bundle, node, domain, reason, expiresAtMs: nowMs + validMs, extraParts, by, nowMs })
  })
  if (done.kind === 'refused') return done
  const issued = done.committed.entries.find(({ entry }) => entry.type === 'node.repair_bundle_issued')
  const { repair } = done.node
  if (issued === undefined || repair === null) throw new Error(`the repair bundle of ${id} was committed without trace`)
  const domainName = (await domainSettingsRow(core.store)).value.name
  return { kind: 'issued', domainName, repair, secret, entry: issued.cursor }
}
