// Which reports of an agent have been taken. An agent's process numbers them; each is taken once and in order, whichever
// of its channels it came over. What was taken last is remembered for one process a node while it has a channel here; after
// that, also after a while on another replica, it is read from the last report in the store: that is lossy, so the first
// report after it may leave a gap or come a second time.

import type { NodeId } from '#domain/core/node.ts'
import type { ReportBody } from '#wire/node/report.ts'
import type { Core } from '#plane/core/core.ts'

export type ReportIntake = {
  /** `taken`: it is in the store now. `repeat`: it was before. `gap`: the ones before it have not come yet. */
  take(node: NodeId, report: ReportBody): Promise<'taken' | 'repeat' | 'gap'>
  /** The highest number taken from this process; null: none is known of. */
  lastTaken(node: NodeId, instance: string): Promise<number | null>
  /** The node has no channel here any more: its next report may go to another replica. */
  forget(node: NodeId): void
}

type Known = { readonly instance: string; readonly number: number; readonly since: 'start' | 'record' }

const mostNodes = 100_000

export type ReportListener = {
  taken(): void
  /** What the store has of its last report, before the first one over a channel of this replica. */
  recalled(node: NodeId, report: ReportBody): void
}

export const openReportIntake = (
  { store, log }: Pick<Core, 'store' | 'log'>,
  listener: ReportListener,
  most = mostNodes,
): ReportIntake => {
  const known = new Map<NodeId, Known>()

  const remember = (node: NodeId, last: Known): void => {
    known.delete(node)
    known.set(node, last)
    const [oldest] = known.keys()
    if (known.size > most && oldest !== undefined) known.delete(oldest)
  }

  /** What is in memory is newer than any record, also if it came there while the record was read. */
  const recall = async (node: NodeId): Promise<void> => {
    if (known.has(node)) return
    const { report } = await store.observation(node)
    if (report !== null && !known.has(node)) {
      remember(node, { instance: report.instance, number: report.number, since: 'record' })
      listener.recalled(node, report)
    }
  }

  return {
    async take(node, report) {
      const { instance, number } = report
      await recall(node)
      // From here on one turn: no other report of the node comes in between.
      const last = known.get(node)
      if (last !== undefined && last.instance === instance) {
        if (number <= last.number) return 'repeat'
        if (last.since === 'start' && number > last.number + 1) return 'gap'
      }
      remember(node, { instance, number, since: 'start' })
      store.observe(node, { report })
      listener.taken()
      log.debug({ node, report: number }, 'report taken')
      return 'taken'
    },
    async lastTaken(node, instance) {
      await recall(node)
      const last = known.get(node)
      return last !== undefined && last.instance === instance ? last.number : null
    },
    forget: (node) => void known.delete(node),
  }
}
