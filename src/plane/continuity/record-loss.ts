// This replica knows that its store has lost commits: the doubt is written to the store, where it stops issuance at every
// replica, including those that were started later and know nothing of it.

import { decideDoubt, doubtAlertKey, type Loss } from '#domain/continuity/continuity.ts'
import type { JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { Feed } from '#plane/core/feed.ts'
import { readDomainAndAlert } from '#plane/core/domain-settings-row.ts'
import type { Core } from '#plane/core/core.ts'

const againAfterMs = 2000

/**
 * A loss that was noticed before, too. Tried again until it is in the store, or confirmed away. `planeName`: host and process,
 * for people.
 */
export const recordLosses = (core: Core, witness: Pick<JournalWitness, 'loss' | 'onLoss'>, planeName: string): void => {
  const { timers, log } = core
  const record = (): void => {
    const loss = witness.loss()
    if (loss === null) return
    recordLoss(core, planeName, loss).catch((error: unknown) => {
      log.warn({ err: error }, 'the loss could not be written to the store; it is tried again')
      timers.after(againAfterMs, record, 'background')
    })
  }
  witness.onLoss(record)
  record()
}

const recordLoss = async (core: Core, planeName: string, loss: Loss): Promise<void> => {
  const done = await commitDecision(core, async () => {
    const read = await readDomainAndAlert(core, doubtAlertKey)
    const { lineage } = read.domain.value.continuity
    // Found under an earlier lineage and confirmed since: the store is not doubted again for it.
    if (lineage > loss.lineage) return { kind: 'unchanged' } as const
    return decideDoubt({
      ...read,
      loss,
      judgedBy: lineage,
      node: planeName,
      witness: 'plane',
      newestEntryMs: null,
      by: { actor: 'system:store', source: null, correlation: null },
    })
  })
  if (done.kind === 'refused') throw new Error('others were quicker each time')
}

/** A loss that an operator confirmed, on any plane, no longer counts. A domain in doubt is not confirmed, whatever its lineage. */
export const followConfirmations = (witness: Pick<JournalWitness, 'confirmed'>, feed: Feed): void => {
  feed.subscribe('store confirmations', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'domain') continue
      const { lineage, doubt } = write.value.continuity
      if (doubt === null) witness.confirmed(lineage)
    }
  })
}
