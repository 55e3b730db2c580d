// One group of commits as one transaction, up to but without its COMMIT.

import type { PgConnection } from '#platform/postgres.ts'
import { sortableId } from '#platform/random.ts'
import type { Loss } from '#domain/continuity/continuity.ts'
import type { NodeId } from '#domain/core/node.ts'
import { lossAmong, lossInWords, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'
import { StaleReplica, StoreInDoubt } from '#plane/store/contract/store-errors.ts'
import type { Committed, JournalAuthor, StoreCore } from '#plane/store/contract/store.ts'
import { ownChain, type OwnChain } from './chain-writer.ts'
import { groupNeeds } from './group-needs.ts'
import { judgeGroup, NodeNotLocked, type Judged, type Judgeable } from './judge-group.ts'
import { lockRows, type FoundChain, type GroupFacts } from './lock-rows.ts'
import { writableOn } from './older-rows.ts'
import type { PgAccess } from './pg-access.ts'
import type { SchemaInUse } from './schema-gate.ts'
import { placeEntries, storedEntries, writeEntries } from './write-entries.ts'
import { checkCounts, writeRows } from './write-rows.ts'

/** The connection groups of commits are written on. */
export type Writer = {
  readonly connection: PgConnection
  /** What the server has warned of since this was emptied. */
  readonly warnings: string[]
}

/**
 * A replica that hangs inside a transaction is cut off by the server and blocks no other for long. The plans are fixed: tables are
 * small when a statement is planned and grow while its plan is kept, and every row is found by an index. Where a table has to be
 * read whole its cost is then imaginary, and must not make the server compile the statement.
 */
const writerSettings = {
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '5s',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
}

export const openWriter = async (access: Pick<PgAccess, 'connect'>): Promise<Writer> => {
  const connection = await access.connect('write', writerSettings)
  const warnings: string[] = []
  connection.onWarning((message) => void warnings.push(message))
  return { connection, warnings }
}

/** What a group of commits is judged and written by. */
export type GroupParts = {
  readonly author: JournalAuthor
  readonly witness: JournalWitness
  readonly schema: SchemaInUse
}

/** A step has been taken since the group was planned: it is planned again. */
export class SchemaChanged extends Error {}

/** This database lacks a place that this replica knows. It may be a primary that was given up: the feed finds out. */
export class PlaceMissing extends StoreInDoubt {
  constructor(loss: Omit<Loss, 'lineage'>) {
    super(lossInWords({ ...loss, lineage: 0 }))
    this.name = 'PlaceMissing'
  }
}

export type MemberOutcome = Committed | 'lost-race' | 'not-leading'

/** What a group comes to when its COMMIT is carried out. */
export type CommitMade = {
  readonly outcomes: readonly MemberOutcome[]
  /** Null: no member won, and there is nothing to commit. */
  readonly written: Written | null
}

export type Written = {
  /** With its final value. */
  readonly chain: OwnChain
  readonly isNew: boolean
  /** All of them, with their final values. */
  readonly chains: readonly FoundChain[]
}

/** `known`: the chain as this replica left it. Throws `Outrun`, `StaleReplica`, `SchemaChanged` and `PlaceMissing`, and what the server says. */
export const runTransaction = async (
  core: Pick<StoreCore, 'clock' | 'random' | 'log'>,
  parts: GroupParts,
  connection: PgConnection,
  self: ReplicaNumber,
  known: OwnChain | null,
  asked: readonly Judgeable[],
): Promise<CommitMade> => {
  const { author, witness } = parts
  const schema = parts.schema.isUnfinished() ? parts.schema.version() : null
  const members =
    schema === null ? asked : asked.map((member) => ({ ...member, plan: writableOn(schema, member.plan) }))
  const { facts, judged } = await lockAndJudge(parts, connection, self, members, schema, new Set())
  const won = members.filter((_, at) => Array.isArray(judged.verdicts[at]))
  if (won.length === 0) {
    await connection.exec('ROLLBACK')
    return { outcomes: judged.verdicts as readonly ('lost-race' | 'not-leading')[], written: null }
  }
  const chain = await ownChain(core, author, connection, self, {
    known,
    chains: facts.chains,
    afresh: witness.loss() !== null,
  })
  const plans = won.map(({ plan }) => plan)
  const placed = placeEntries(chain, plans, author.domainName(), () => sortableId(core.clock.nowMs(), core.random))
  await checkCounts([...writeRows(connection, judged), ...writeEntries(connection, author.signer, chain, placed)])
  const { sequence, hash } = placed.tail.place
  const moved: OwnChain = { writer: self, row: { sequence, hash, writer: self }, base: null, tail: placed.tail }
  const others = facts.chains.filter((other) => other.chain !== placed.tail.place.chain)
  const waiting = placed.commits.values()
  return {
    outcomes: judged.verdicts.map((verdict) => {
      if (verdict === 'lost-race' || verdict === 'not-leading') return verdict
      const commit = waiting.next().value
      if (commit === undefined) throw new Error('a commit without entries')
      return { kind: 'committed', origin: 'here', writes: verdict, entries: storedEntries(commit, others) }
    }),
    written: {
      chain: moved,
      isNew: chain.row === null,
      chains: [...others, { chain: placed.tail.place.chain, sequence, hash, writer: self }],
    },
  }
}

const lockAndJudge = async (
  parts: Pick<GroupParts, 'witness' | 'schema'>,
  connection: PgConnection,
  self: ReplicaNumber,
  members: readonly Judgeable[],
  /** The one they are planned for; null: the newest. */
  schema: number | null,
  alsoLocked: ReadonlySet<NodeId>,
): Promise<{ readonly facts: GroupFacts; readonly judged: Judged }> => {
  const plans = members.map(({ plan }) => plan)
  const asLeader = members.some(({ fencingToken }) => fencingToken !== null)
  const { witness } = parts
  // While there is a loss, nothing is compared: what may be committed then does not rely on the journal.
  const known = witness.loss() === null ? witness.places() : []
  const facts = await lockRows(connection, self, groupNeeds(plans, alsoLocked), asLeader, known, schema !== null)
  if (facts.schema !== null && facts.schema !== schema) {
    parts.schema.learn(facts.schema)
    throw new SchemaChanged(`the schema has become ${facts.schema}`)
  }
  if (!facts.leased) throw new StaleReplica('this replica has no lease')
  const missing = lossAmong(facts.places)
  if (missing !== null) throw new PlaceMissing(missing)
  try {
    return { facts, judged: judgeGroup(facts, members) }
  } catch (error) {
    if (!(error instanceof NodeNotLocked) || alsoLocked.has(error.node)) throw error
    // Locks are taken in one order or not at all.
    await connection.exec('ROLLBACK')
    return lockAndJudge(parts, connection, self, members, schema, new Set([...alsoLocked, error.node]))
  }
}
