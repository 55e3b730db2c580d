// Receipts that are open: those of this plane's own withdrawals, which it collects itself for some seconds, and those that
// the plane which leads goes on with.

import type { Row } from '#domain/core/change.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import { settled, stragglersOf } from '#domain/revocation/receipt-rules.ts'
import type { Store } from '#plane/store/contract/store.ts'
import {
  askReplicas,
  collect,
  collectMs,
  keep,
  lookAtPeers,
  lookAtStragglers,
  type Collecting,
  type ProofSources,
  type ReceiptCore,
} from './collect-receipt.ts'
import { withStore } from '#plane/core/core.ts'

export type Receipts = {
  /**
   * Right after the commit that took effect. Answers once the receipt is effective, or a second later with what is known
   * by then; the rest is collected behind the caller's back. Does not reject: what it is about has happened.
   */
  collect(receipt: Receipt): Promise<Receipt>
  /** One look at those that are open and no longer collected by the plane they are of; where they are many, at the next of them. */
  resumeOpen(asLeader: Store): Promise<void>
  /** With what peers have said by now. */
  refresh(receipt: Receipt): Promise<Receipt>
}

const answerWithinMs = 1000
/** Effective, and still waiting for peers: those are away, and looked for now and then. */
const patientAfterMs = 60_000
const patientEveryMs = 10_000
const atOnce = 100

export const openReceipts = (core: ReceiptCore, sources: ProofSources): Receipts => {
  const { clock, timers, log } = core
  /** Of receipts gone on with here: the replicas that were seen, and when it was looked at last. */
  const followed = new Map<string, { readonly seen: Map<number, string>; lookedMs: number }>()
  /** The last one that was looked at: those that wait for a peer for months must not keep the others from their turn. */
  let lookedUpTo: string | null = null

  const begin = async (receipt: Receipt, progress: (receipt: Receipt) => void): Promise<void> => {
    const row = await core.store.get('receipt', receipt.id)
    if (row === null) throw new Error(`the receipt ${receipt.id} is not in the store`)
    const decidedMs = clock.monotonicMs() - (clock.nowMs() - receipt.decidedAtMs)
    const now = (): number => receipt.decidedAtMs + Math.max(0, Math.round(clock.monotonicMs() - decidedMs))
    await collect({ core, sources, isOwn: true, seen: new Map(), now }, row, progress)
  }

  const resume = async (asLeader: Store, row: Row<Receipt>): Promise<void> => {
    const one = followed.get(row.value.id) ?? { seen: new Map<number, string>(), lookedMs: -Infinity }
    const isPatient =
      row.value.effectiveAtMs !== null && Math.abs(clock.nowMs() - row.value.decidedAtMs) > patientAfterMs
    if (isPatient && clock.monotonicMs() - one.lookedMs < patientEveryMs) return
    followed.set(row.value.id, one)
    one.lookedMs = clock.monotonicMs()
    const now = (): number => Math.max(clock.nowMs(), row.value.decidedAtMs)
    const collecting: Collecting = { core, sources, isOwn: false, seen: one.seen, now }
    const receipt: Receipt = { ...row.value, clocks: 'of several planes' }
    const asked = receipt.effectiveAtMs === null ? await askReplicas(collecting, receipt, () => {}) : receipt
    const looked =
      asked.effectiveAtMs === null ? asked : await lookAtStragglers(core, await lookAtPeers(core, sources, asked))
    const kept = await keep(withStore(core, asLeader), row, settled(looked, now()))
    if (kept.value.settledAtMs !== null) followed.delete(kept.value.id)
  }

  return {
    async collect(receipt) {
      if (receipt.settledAtMs !== null) return receipt
      let known = receipt
      const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
      const cancel = timers.after(answerWithinMs, answer)
      begin(receipt, (more) => {
        known = more
        if (known.effectiveAtMs !== null) answer()
      })
        .catch((error: unknown) =>
          log.warn({ err: error, receipt: receipt.id }, 'a receipt is left to the plane that leads'),
        )
        .finally(answer)
      await answered
      cancel()
      return known
    },

    async resumeOpen(asLeader) {
      const after = lookedUpTo
      const open = await asLeader.list('receipt', { where: { unsettled: 1 }, after, limit: atOnce })
      lookedUpTo = open.length < atOnce ? null : (open.at(-1)?.value.id ?? null)
      const ids = new Set(open.map(({ value }) => value.id))
      const isOver = (id: string): boolean =>
        (after === null || id > after) && (lookedUpTo === null || id <= lookedUpTo) && !ids.has(id)
      for (const id of followed.keys()) if (isOver(id)) followed.delete(id)
      // Also those of a plane whose clock is ahead: looked at twice, a receipt is none the worse.
      const ours = open.filter(({ value }) => Math.abs(clock.nowMs() - value.decidedAtMs) >= collectMs)
      const outcomes = await Promise.allSettled(ours.map((row) => resume(asLeader, row)))
      const failed = outcomes.find((outcome) => outcome.status === 'rejected')
      if (failed !== undefined) throw failed.reason
    },

    async refresh(receipt) {
      if (receipt.settledAtMs !== null || stragglersOf(receipt).length === 0) return receipt
      return lookAtStragglers(core, await lookAtPeers(core, sources, receipt))
    },
  }
}
