// Which reports of an agent have been taken. An agent's process numbers them; each is taken once and in order, whichever
// of its channels it came over. What was taken last is remembered for one process a node, and after a restart read from
// the last report on record: that is lossy, so the first report after it may leave a gap or come a second time.

import type { NodeId } from '#domain/node.ts'
import type { Log } from '#platform/log.ts'
import type { Store } from '#plane/store/store.ts'
import type { ReportBody } from '#wire/report.ts'

export type ReportIntake = {
  /** `taken`: it is on record now. `repeat`: it was before. `gap`: the ones before it have not come yet. */
  take(node: NodeId, report: ReportBody): Promise<'taken' | 'repeat' | 'gap'>
  /** The highest number taken from this process; null: none is known of. */
  lastTaken(node: NodeId, instance: string): Promise<number | null>
}

type Known = { readonly instance: string; readonly number: number; readonly since: 'start' | 'record' }

const mostNodes = 100_000

export const openReportIntake = (
  { store, log }: { readonly store: Pick<Store, 'observe' | 'observation'>; readonly log: Log },
  most = mostNodes,
): ReportIntake => {
  const known = new Map<NodeId, Known>()

  const lastOf = async (node: NodeId): Promise<Known | undefined> => {
    const here = known.get(node)
    if (here !== undefined) return here
    const { report } = await store.observation(node)
    // While the record was read another report may have been taken: what is in memory is newer.
    return known.get(node) ?? (report === null ? undefined : { ...report, since: 'record' })
  }

  const remember = (node: NodeId, last: Known): void => {
    known.delete(node)
    known.set(node, last)
    const [oldest] = known.keys()
    if (known.size > most && oldest !== undefined) known.delete(oldest)
  }

  return {
    async take(node, report) {
      const { instance, number } = report
      const last = await lastOf(node)
      // From here on one turn: no other report of the node comes in between.
      if (last !== undefined && last.instance === instance) {
        if (number <= last.number) return 'repeat'
        if (last.since === 'start' && number > last.number + 1) return 'gap'
      }
      remember(node, { instance, number, since: 'start' })
      store.observe(node, { report })
      log.debug({ node, report: number }, 'report taken')
      return 'taken'
    },
    async lastTaken(node, instance) {
      const last = await lastOf(node)
      return last !== undefined && last.instance === instance ? last.number : null
    },
  }
}
