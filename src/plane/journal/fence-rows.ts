// A row that lets in what the journal shuts out is fenced by a commit of its own, with its entries: that holds on every
// replica and after a restart. A node is quarantined, so that only an operator lets it in again; what was deleted is put back.

import { releaseAll } from '#domain/fleet/allocation.ts'
import { denialKey } from '#domain/core/certificate.ts'
import { readOf, boundedText, decided, entry, mergeParts, type Attribution, type Decided } from '#domain/core/change.ts'
import { decideQuarantine } from '#domain/revocation/quarantine.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { journalActor } from '#domain/journal/rows-and-journal.ts'
import { decideRevokeToken } from '#domain/enrollment/token.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { RowDifference, RowFence } from './compare-rows.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import { everyProgramEnded } from '#plane/core/programs-of-node.ts'
import { readableNode } from '#plane/core/readable-node.ts'
import type { FlowCore } from '#plane/core/core.ts'

const by: Attribution = { actor: journalActor, source: null, correlation: null }

/** What was refused was fenced already, by this or by another replica. */
export const fenceRow = async (core: FlowCore, { fence, why }: RowDifference): Promise<void> => {
  if (fence !== null) await commitDecision(core, () => decide(core, fence, why))
}

const decide = async ({ store, clock }: FlowCore, fence: RowFence, why: string): Promise<Decided | Refusal> => {
  const nowMs = clock.nowMs()
  switch (fence.kind) {
    case 'quarantine': {
      const found = await store.get('node', fence.node)
      if (found === null) return refuse('NODE_NOT_FOUND', fence.node)
      const node = await readableNode(store, found)
      const reason = `its row in the database was changed: ${why}`
      const allocations = await liveAllocations(store, fence.node)
      const domain = await domainSettingsRow(store)
      const lost = `its node was quarantined: ${reason}`
      const { clockToleranceMs: toleranceMs } = domain.value
      const ending = { why: boundedText(lost), reason: 'unspecified', toleranceMs, by, nowMs } as const
      const extraParts = mergeParts([
        releaseAll({ node, by, nowMs, allocations, why: lost }),
        await everyProgramEnded(store, fence.node, ending),
      ])
      const { revokedBefore } = fence
      return decideQuarantine({ node, by, nowMs, reason, revokedBefore, domain, extraParts })
    }
    case 'deny': {
      const key = denialKey(fence.denial)
      const row = await store.get('denial', key)
      if (row !== null) return refuse('NODE_STATE_CONFLICT', 'it is denied again')
      const node = fence.denial.kind === 'epoch' ? fence.denial.node : null
      return decided({
        reads: [readOf('denial', key, null)],
        writes: [{ put: 'denial', value: fence.denial }],
        entries: [entry(by, nowMs, 'store.row_restored', { node }, { row: 'denial', key, why: boundedText(why) })],
      })
    }
    case 'ban': {
      const { spki, node } = fence
      if ((await store.get('key-ban', spki)) !== null) return refuse('NODE_STATE_CONFLICT', 'it is banned again')
      return decided({
        reads: [readOf('key-ban', spki, null)],
        writes: [
          { put: 'key-ban', value: { spki, why: 'restored: the journal says that its node was revoked', atMs: nowMs } },
        ],
        entries: [
          entry(by, nowMs, 'store.row_restored', { node }, { row: 'key-ban', key: spki, why: boundedText(why) }),
        ],
      })
    }
    case 'spend': {
      const token = await store.tokenById(fence.token)
      return token === null ? refuse('TOKEN_INVALID') : decideRevokeToken({ token, by, nowMs })
    }
  }
}
