// Publishes the commits of other replicas here. The journal is the truth: each chain is followed by its sequence, from its end
// when the store was opened. Hints only say when to look; every renewal of the lease looks as well.

import type { Change } from '#domain/core/change.ts'
import type { PgConnection } from '#platform/postgres.ts'
import type { SeenHead } from '#domain/continuity/sighting.ts'
import { lossAmong, lossInWords, type FoundPlace, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import type { Committed, StoreCore } from '#plane/store/contract/store.ts'
import { answersWithin, type InTime } from './answered-in-time.ts'
import { readChain, type Position, type ReadCommit } from './chain-reading.ts'
import { chainEnds, continuityOf, entriesBehind, rowsOf, type ChainEnd, type Run } from './feed-reads.ts'
import { findPlaces } from './known-places.ts'
import type { Lease, Renewal } from './lease.ts'
import { openOwnCommits } from './own-commits.ts'
import type { ReplicaPace } from './replica-pace.ts'
import { openPublishedRows, type FoundRow } from './published-rows.ts'

export type ForeignFeed = {
  /** Takes the ends of all chains as its places: rows that are loaded from the store afterwards are not older. */
  start(): Promise<void>
  /** A group of commits has missed a place that is known here. */
  missed(why: string): void
  /** Soon, and again if one is under way. */
  look(): void
  /**
   * Every commit of this replica is made in here. Its flow publishes the result, in the same turn; the feed leaves it out.
   */
  commitHere(change: Change, commit: () => Promise<Committed | 'lost-race'>): Promise<Committed | 'lost-race'>
  onForeignCommit(run: (committed: Committed) => void): void
  stop(): Promise<void>
}

const entriesAtOnce = 500

export const openForeignFeed = (
  { timers, log }: Pick<StoreCore, 'timers' | 'log'>,
  lease: Pick<Lease, 'renewal' | 'caughtUp' | 'fallBehind' | 'onRenewed' | 'confirmed'>,
  witness: JournalWitness,
  pace: ReplicaPace,
): ForeignFeed => {
  const inTime = answersWithin(timers, pace.answerWithinMs)
  const positions = new Map<string, Position>()
  const own = openOwnCommits()
  const publishedRows = openPublishedRows()
  const listeners: ((committed: Committed) => void)[] = []
  const brokenAt = new Map<string, string>()
  /** Where each chain ended when it was first seen to be this replica's: up to there another may have written. */
  const ownFrom = new Map<string, number>()
  let looking: Promise<void> | null = null
  let again = false
  let stopped = false

  const place = (chain: string): Position => positions.get(chain) ?? { sequence: 0, hash: null }

  /** What has been read is known for good; an entry that can be read has been committed. */
  const moveTo = (chain: string, { sequence, hash }: Position): void => {
    positions.set(chain, { sequence, hash })
    if (hash !== null) witness.learn({ chain, sequence, hash })
  }

  const publish = ({ entries, touched }: Publication, found: (kind: string, key: string) => FoundRow | null): void => {
    const writes = touched.flatMap(([kind, key]) => {
      const row = found(kind, key)
      return row === null ? [] : [publishedRows.newest(row)]
    })
    for (const run of listeners) {
      try {
        run({ kind: 'committed', origin: 'elsewhere', writes, entries })
      } catch (error) {
        log.error({ err: error }, 'a commit of another replica failed at some subscribers')
      }
    }
  }

  /** Only the feed moves a place, so it is still where it was when the entries behind it were read. */
  const publishSteps = async (run: Run, steps: readonly Step[]): Promise<void> => {
    publishedRows.beginReading()
    try {
      const found = await rowsOf(
        run,
        steps.filter((step) => !step.published).flatMap((step) => step.commit.touched),
      )
      for (const { chain, commit, published } of steps) {
        if (published) own.passed(commit.entries)
        else publish(commit, found)
        moveTo(chain, commit.position)
      }
    } finally {
      publishedRows.endReading()
    }
  }

  const stepsOf = (chain: string, commits: readonly ReadCommit[]): { steps: Step[]; waits: boolean } => {
    const steps: Step[] = []
    for (const commit of commits) {
      const sequence = commit.entries[0]?.entry.sequence as number
      const published = own.wasPublished(chain, sequence)
      if (!published && own.mayBeAnswered(chain, sequence)) return { steps, waits: true }
      steps.push({ chain, commit, published })
    }
    return { steps, waits: false }
  }

  /** True when everything up to the ends has been published here. */
  const follow = async (run: Run, ends: readonly ChainEnd[], self: number): Promise<boolean> => {
    let left = ends
    let complete = true
    for (let atMost = entriesAtOnce; ;) {
      for (const { chain } of left) positions.set(chain, own.stepOver(chain, place(chain)))
      left = left.filter(({ chain, end }) => place(chain).sequence < end)
      if (left.length === 0) return complete
      const rows = await entriesBehind(run, left, place, atMost)
      const steps: Step[] = []
      const stuck = new Set<ChainEnd>()
      for (const one of left) {
        const { commits, broken } = readChain(place(one.chain), rows(one.chain), { atMost, end: one.end })
        const next = stepsOf(one.chain, commits)
        steps.push(...next.steps)
        if (!next.waits && broken === null) continue
        stuck.add(one)
        // An entry of this replica's own commit under way was not committed by another.
        const isOwn = one.writer === self && place(one.chain).sequence >= (ownFrom.get(one.chain) ?? Infinity)
        if (!next.waits || !isOwn) complete = false
        if (!next.waits) complain(one.chain, broken)
      }
      await publishSteps(run, steps)
      left = left.filter((one) => !stuck.has(one))
      // A commit with more entries than were read.
      if (steps.length === 0) atMost *= 2
    }
  }

  const complain = (chain: string, broken: string | null): void => {
    if (broken === null) return
    lease.fallBehind(`chain ${chain} cannot be followed, ${broken}; see: muster journal verify`)
    if (brokenAt.get(chain) === broken) return
    brokenAt.set(chain, broken)
    log.error({ chain, broken }, 'the journal cannot be followed; see: muster journal verify')
  }

  const lookOnce = async (renewal: Renewal): Promise<void> => {
    const run = runIn(inTime, renewal)
    // Before the question: what is committed while it is asked need not be in the answer.
    const known = witness.loss() === null ? witness.places() : []
    const [ends, found] = await Promise.all([chainEnds(run), findPlaces(run, known)])
    const missing = lossAmong(found)
    if (missing !== null) return judgeLoss(missing, known)
    await hearConfirmation(run)
    for (const { chain, base, end, writer } of ends) {
      // Also where everything up to the place has been pruned: there is no entry left to compare.
      if ((positions.get(chain)?.sequence ?? base) === base) positions.set(chain, { sequence: base, hash: null })
      if (writer !== renewal.number) ownFrom.delete(chain)
      else if (!ownFrom.has(chain)) ownFrom.set(chain, end)
      if (writer === renewal.number) own.ownChain(chain)
    }
    if (await follow(run, ends, renewal.number)) lease.caughtUp(renewal.sentAt)
  }

  /**
   * A primary that was given up may still answer, and lacks what its successor has acknowledged. So the question is asked
   * again together with a synchronous write, which only the primary confirms. Until that is answered nothing is served.
   */
  const judgeLoss = async (suspected: Missing, known: readonly SeenHead[]): Promise<void> => {
    lease.fallBehind(lossInWords({ ...suspected, lineage: witness.lineage() }))
    const [found, { lineage }] = await lease.confirmed((connection) =>
      Promise.all([findPlaces(runOn(connection), known), continuityOf(runOn(connection))]),
    )
    const missing = lossAmong(found)
    if (missing === null) return
    if (lineage > witness.lineage()) {
      // This replica was paused or cut off while others noticed the loss and an operator confirmed the store.
      witness.startOver(lineage)
      log.warn({ ...missing, lineage }, 'the store has lost commits that this plane knew of, and was confirmed since')
    } else {
      witness.lose(missing)
      log.error({ ...missing }, 'the store has lost commits that this plane knows of: see muster store confirm')
    }
    await resume(found)
    look()
  }

  /**
   * Chains that still hold what is known are followed from there, and new ones from their beginning: what others wrote
   * there before this replica noticed the loss may be a revocation, or the confirmation. A chain that lost entries is
   * followed from its present end.
   */
  const resume = async (found: readonly FoundPlace[]): Promise<void> => {
    const ends = await chainEnds(runIn(inTime, lease.renewal()))
    const cut = new Set(found.filter((place) => lossAmong([place]) !== null).map(({ known }) => known.chain))
    const before = new Map(positions)
    positions.clear()
    for (const chain of cut) own.forget(chain)
    for (const { chain, base, end, hash } of ends) {
      const atEnd = { sequence: end, hash: end === base ? null : hash }
      moveTo(chain, cut.has(chain) ? atEnd : (before.get(chain) ?? { sequence: base, hash: null }))
    }
  }

  /** The entry of a confirmation may be in a chain that lost entries, where it is not read. So the row is asked as well. */
  const hearConfirmation = async (run: Run): Promise<void> => {
    const loss = witness.loss()
    if (loss === null) return
    const { lineage, doubt } = await continuityOf(run)
    if (doubt !== null || lineage <= loss.lineage) return
    const touched = [['domain', 'domain']] as const
    publishedRows.beginReading()
    try {
      const found = await lease.confirmed((connection) => rowsOf(runOn(connection), touched))
      publish({ entries: [], touched }, found)
    } finally {
      publishedRows.endReading()
    }
  }

  const start = async (): Promise<void> => {
    const renewal = lease.renewal()
    const ends = await chainEnds(runIn(inTime, renewal))
    positions.clear()
    for (const { chain, base, end, hash } of ends) moveTo(chain, { sequence: end, hash: end === base ? null : hash })
    lease.caughtUp(renewal.sentAt)
  }
  const look = (): void => {
    again = looking !== null
    if (again || stopped) return
    looking = lookOnce(lease.renewal())
      // The next renewal looks again, on another connection if need be.
      .catch((error: unknown) => log.debug({ err: error }, 'the journal could not be followed'))
      .finally(() => {
        looking = null
        if (again) look()
      })
  }
  lease.onRenewed(look)
  own.onAnswered(look)

  return {
    start,
    missed(why) {
      lease.fallBehind(why)
      look()
    },
    look,
    async commitHere(change, commit) {
      const commitOfOurs = own.begin()
      const rows = publishedRows.awaited(change)
      try {
        const outcome = await commit()
        if (outcome === 'lost-race') {
          rows.failed()
          return outcome
        }
        commitOfOurs.published(outcome.entries)
        return rows.committed(outcome)
      } catch (error) {
        rows.failed()
        throw error
      } finally {
        commitOfOurs.end()
      }
    },
    onForeignCommit: (run) => void listeners.push(run),
    async stop() {
      stopped = true
      await looking
    },
  }
}

type Publication = Pick<ReadCommit, 'entries' | 'touched'>

type Missing = NonNullable<ReturnType<typeof lossAmong>>

/** `published`: by a flow of this replica. */
type Step = { readonly chain: string; readonly commit: ReadCommit; readonly published: boolean }

const runOn =
  (connection: PgConnection): Run =>
  (statement, values) =>
    connection.run(statement, values)

const runIn =
  (inTime: InTime, { connection }: Renewal): Run =>
  (statement, values) =>
    inTime(connection, connection.run(statement, values))
