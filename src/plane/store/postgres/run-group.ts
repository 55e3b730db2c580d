// A group of commits until it is known what became of it: run again while another replica is quicker or the connection
// breaks, settled where a COMMIT was not answered, and given up after a while.

import { pgTrouble } from '#platform/postgres.ts'
import { sleep } from '#platform/timers.ts'
import { hexOf } from '#plane/store/journal/journal-chain.ts'
import { StaleReplica, StoreFault, StoreInDoubt } from '#plane/store/contract/store-errors.ts'
import type { StoreCore } from '#plane/store/contract/store.ts'
import { answeredInTime } from './answered-in-time.ts'
import { releaseChain, type OwnChain } from './chain-writer.ts'
import type { Judgeable } from './judge-group.ts'
import type { PgReplicas } from './open-pg-replicas.ts'
import type { PgAccess } from './pg-access.ts'
import { openWriter, PlaceMissing, runTransaction, SchemaChanged } from './run-transaction.ts'
import type { CommitMade, GroupParts, MemberOutcome, Writer } from './run-transaction.ts'
import { settleCommit, unsettledCommit, type Unsettled } from './settle-commit.ts'
import { Outrun } from './write-rows.ts'

export type GroupRunner = {
  /** Rejects with a StoreFault when nothing of it was committed, or when the outcome is unknown. */
  run(members: readonly Judgeable[]): Promise<readonly MemberOutcome[]>
  /** How far every chain had come, as far as acknowledged commits of this replica have seen. */
  known(): ReadonlyMap<string, number>
  close(): Promise<void>
}

/** A group that has not come through by then is given up. */
const givenUpAfterMs = 8000
/** A COMMIT waits for the disks of two machines; after this time its connection counts as lost. */
const commitMs = 5000
/** Several statements, each of which may wait for a lock. */
const stepMs = 7000
const shortestPauseMs = 5
const longestPauseMs = 500

export const openGroupRunner = (
  core: StoreCore,
  access: Pick<PgAccess, 'connect'>,
  parts: GroupParts,
  shared: Pick<PgReplicas, 'self' | 'onPlaceMissing'>,
): GroupRunner => {
  const { clock, timers, random, log } = core
  const { witness } = parts
  const places = new Map<string, number>()
  let writer: Writer | null = null
  let own: OwnChain | null = null
  let unsettled: Unsettled | null = null
  // The chain it wrote may be the one that was cut short, and places from before a loss are not to be verified after it.
  witness.onLoss((loss) => {
    if (loss !== null) own = null
    places.clear()
  })

  const connected = async (): Promise<Writer> => {
    if (writer === null || writer.connection.ended) writer = await openWriter(access)
    return writer
  }
  const drop = (): void => {
    writer?.connection.destroy()
    writer = null
  }
  const rollBack = async (): Promise<void> => {
    if (writer === null || writer.connection.ended) return
    const { connection } = writer
    await answeredInTime(timers, connection, stepMs, connection.exec('ROLLBACK')).catch(drop)
  }
  const keep = ({ written }: CommitMade): void => {
    unsettled = null
    if (written === null) return
    own = written.chain
    const { chain: name, sequence: end, hash } = written.chain.tail.place
    witness.learn({ chain: name, sequence: end, hash: hexOf(hash) })
    for (const { chain, sequence } of written.chains) places.set(chain, Math.max(sequence, places.get(chain) ?? 0))
  }

  const attempt = async (members: readonly Judgeable[]): Promise<CommitMade> => {
    const self = shared.self()
    if (self === null) throw new StaleReplica('this replica has no lease')
    const { connection, warnings } = await connected()
    const made = await answeredInTime(
      timers,
      connection,
      stepMs,
      runTransaction(core, parts, connection, self, own, members),
    )
    if (made.written === null) return made
    warnings.splice(0)
    unsettled = unsettledCommit(members, made, made.written)
    await answeredInTime(timers, connection, commitMs, connection.exec('COMMIT'))
    // All that is said of a commit that its standby does not have.
    if (warnings.length > 0) throw new Error(warnings.join('; '))
    keep(made)
    return made
  }

  /** What was in doubt, if it was committed. On a new connection: the one before may still be at work on the server. */
  const settle = async (which: Unsettled): Promise<CommitMade | null> => {
    drop()
    const became = await settleCommit(timers, await connected(), which)
    const { chain, operation, made } = which
    log.warn({ chain, operation, became }, 'a commit that was in doubt is settled')
    unsettled = null
    if (became === 'not-committed') return null
    keep(made)
    return made
  }
  /** The outcome of these members, if it was in doubt; the feed publishes the others, for which no caller waits. */
  const settleFirst = async (members: readonly Judgeable[]): Promise<CommitMade | null> => {
    const which = unsettled
    const made = which === null ? null : await settle(which)
    return which?.of === members ? made : null
  }

  /** Leaves no transaction open. */
  const mayTryAgain = async (error: unknown): Promise<boolean> => {
    if (error instanceof StaleReplica) {
      await rollBack()
      return false
    }
    if (error instanceof PlaceMissing) {
      // Another connection may lead to another server.
      drop()
      shared.onPlaceMissing(error.message)
      return false
    }
    if (error instanceof Outrun || error instanceof SchemaChanged) {
      await rollBack()
      return true
    }
    const trouble = writer?.connection.ended === true ? 'connection' : pgTrouble(error)
    if (trouble === 'again' || trouble === 'unique') await rollBack()
    else drop()
    // If entries were added behind it, its end has to be found again.
    if (trouble === 'unique') own = null
    return trouble === 'again' || trouble === 'unique' || trouble === 'connection'
  }

  const run = async (members: readonly Judgeable[]): Promise<readonly MemberOutcome[]> => {
    const untilMs = clock.monotonicMs() + givenUpAfterMs
    let pauseMs = shortestPauseMs
    for (;;) {
      try {
        return ((await settleFirst(members)) ?? (await attempt(members))).outcomes
      } catch (error) {
        const again = (await mayTryAgain(error)) || unsettled !== null
        if (!again || clock.monotonicMs() >= untilMs) throw faultOf(error, unsettled?.of === members)
        log.debug({ err: error }, 'a group of commits is tried again')
      }
      await sleep(timers, pauseMs * (0.5 + random.unit()))
      pauseMs = Math.min(2 * pauseMs, longestPauseMs)
    }
  }

  return {
    run,
    known: () => places,
    async close() {
      const connection = writer?.connection
      if (connection === undefined || connection.ended) return
      try {
        // The next replica goes on with it at once.
        if (own !== null) {
          const released = connection.run(releaseChain, [own.tail.place.chain, own.writer])
          await answeredInTime(timers, connection, commitMs, released)
        }
      } catch (error) {
        log.debug({ err: error }, 'the chain was not released; it is free when the lease is over')
      }
      await connection.end()
    },
  }
}

const faultOf = (error: unknown, inDoubt: boolean): StoreFault => {
  if (error instanceof StaleReplica || error instanceof StoreInDoubt) return error
  return new StoreFault(inDoubt ? 'it is not known whether this was committed' : 'nothing was committed', error)
}
