// Agents keep sightings of the journal, in case an older copy of the store is restored. Each first shows what it has seen, and
// gets a newer one only if that fits: an older copy must not replace what its nodes know.
//
// One signature serves all agents. They get a sighting every ten minutes, and soon after a denial, since a denial must not be
// forgotten.

import { lossOf } from '#domain/continuity/continuity.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { actorOf } from '#domain/core/principal.ts'
import { refuse } from '#domain/core/refusal.ts'
import { isLater, sightingOf, type Sighting } from '#domain/continuity/sighting.ts'
import { sleep, turn } from '#platform/timers.ts'
import type { Judged, SightingJudge } from './judge-sighting.ts'
import { recordRefusal, type RefusalBudgets } from '#plane/core/record-refusal.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { placesIn } from '#plane/store/journal/places-in-journal.ts'
import { formatStatement } from '#wire/core/statement.ts'
import type { Gate } from '#plane/cluster/gate.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { Core } from '#plane/core/core.ts'

export type SightingParts = {
  readonly budgets: RefusalBudgets
  readonly sessions: Pick<SessionRegistry, 'all' | 'isClosed'>
  readonly gate: Pick<Gate, 'serves'>
  readonly recovery: Pick<RecoveryAuthority, 'signStatement'>
  readonly settings: () => DomainSettings
  readonly sightingJudge: SightingJudge
  /**
   * How long after it was read a head is certain to outlive the database it was read from: one that reaches agents and is
   * lost in a failover would be taken for a loss, though what it stands for was never answered to a caller.
   */
  readonly certainAfterMs: number
}

export type Sightings = {
  /** The agent has shown the newest it has kept, or that it has none. */
  shown(session: Session, statement: string | null, earlier?: readonly string[]): Promise<void>
  /** All agents get a sighting soon. */
  look(): void
}

export const sightingsEveryMs = 600_000
/** Commits that come close together are published together. */
const soonMs = 2_000
/** The share of time that is left to other work while sightings are sent to all agents. */
const restFactor = 10
const sessionsPerTurn = 128

/** `fromLineage`: an agent that knows more than this store gets a sighting only after an operator has confirmed the store. */
type SentSighting = { readonly statement: string | null; readonly fromLineage: number }

type Made = { readonly sighting: Sighting; readonly statement: string }

export const openSightings = (core: Omit<Core, 'random'>, parts: SightingParts): Sightings => {
  const { timers, clock, log } = core
  const { settings, sessions, sightingJudge, budgets } = parts
  const reported = new WeakSet<Session>()
  /** The sessions that may get sightings, with the last one sent. */
  const sent = new WeakMap<Session, SentSighting>()
  let made: Made | null = null
  let wanted = false
  let busy = false

  const look = (): void => {
    wanted = true
    if (!busy) void work()
  }
  const work = async (): Promise<void> => {
    busy = true
    while (wanted && !sessions.isClosed()) {
      await sleep(timers, soonMs, 'background')
      // The store goes right after the channels.
      if (sessions.isClosed()) break
      wanted = false
      const tookMs = await round().catch((error: unknown) => {
        log.warn({ err: error }, 'a sighting of the journal could not be sent to agents')
        return 0
      })
      await sleep(timers, tookMs * restFactor, 'background')
    }
    busy = false
  }
  const round = async (): Promise<number> => {
    made = (await make(core, parts, made)) ?? made
    const beganMs = clock.monotonicMs()
    let looked = 0
    for (const session of sessions.all()) {
      tell(session)
      if (++looked % sessionsPerTurn === 0) await turn(timers)
    }
    return clock.monotonicMs() - beganMs
  }
  const tell = (session: Session): void => {
    const { lineage, doubt } = settings().continuity
    const last = sent.get(session)
    if (last === undefined || made === null || doubt !== null || made.sighting.lineage !== lineage) return
    if (lineage < last.fromLineage || last.statement === made.statement || !session.alive) return
    sent.set(session, { ...last, statement: made.statement })
    session.send({ type: 'sighting', body: { statement: made.statement } })
  }

  /** Up to the first that is doubtful or foreign: an agent of a domain before this one would have each of them journaled. */
  const judgeAll = async ({ principal, number }: Session, statements: readonly string[]): Promise<Judged> => {
    const { id, source } = principal
    const correlation = `session-${number}`
    for (const statement of statements) {
      const judged = await sightingJudge.judge(statement, id, { actor: actorOf(principal), source, correlation })
      if (judged === 'doubtful') return judged
      if (judged === 'fitting') continue
      // Not held against the channel: the key that signed it may be lost, and the node would never get in again.
      const refusal = refuse('REQUEST_INVALID', 'the sighting is not one that this plane has signed')
      await recordRefusal(core, budgets, { refusal, principal, source, method: 'frame', path: 'sighting', correlation })
      return judged
    }
    return 'fitting'
  }

  core.feed.subscribe('sightings', (committed) => {
    if (isWorthTelling(committed, made)) look()
  })

  return {
    look,
    async shown(session, statement, earlier = []) {
      if (reported.has(session)) return session.end('REQUEST_INVALID', 'a second sighting')
      reported.add(session)
      const judged = await judgeAll(session, [...(statement === null ? [] : [statement]), ...earlier])
      const { lineage } = settings().continuity
      sent.set(session, { statement: null, fromLineage: judged === 'doubtful' ? lineage + 1 : 0 })
      if (made === null) look()
      else tell(session)
    },
  }
}

/** Null: there is no sighting to send now. */
const make = async (
  { store, timers, log }: Omit<Core, 'random'>,
  { settings, gate, recovery, certainAfterMs }: SightingParts,
  before: Made | null,
): Promise<Made | null> => {
  const { lineage, doubt } = settings().continuity
  if (doubt !== null) return null
  const { journal } = store
  const heads = await journal.heads()
  const sighting = sightingOf(lineage, heads)
  if (sighting.heads.length === 0 || (before !== null && !isLater(sighting, before.sighting))) return null
  // A fork that has grown past the last published head must not replace it at the agents.
  const last = before?.sighting.lineage === lineage ? before.sighting : null
  if (last !== null && lossOf(last, lineage, await placesIn(journal, last.heads, heads)) !== null) {
    log.error({ sent: last.heads }, 'the journal lacks the last published head: no sighting is sent to agents')
    return null
  }
  if (certainAfterMs > 0) await sleep(timers, certainAfterMs, 'background')
  const now = settings()
  // A replica that serves has had a later write confirmed: what was in the database before is durable.
  if (!gate.serves() || now.continuity.doubt !== null || now.continuity.lineage !== lineage) return null
  const value = { domain: now.name, lineage, heads: [...sighting.heads] }
  return { sighting, statement: formatStatement('sighting', value, (bytes) => recovery.signStatement(bytes)) }
}

/** Entries that must not be forgotten, and the confirmation of a store, which agents that knew more have to learn. */
const isWorthTelling = ({ writes }: Committed, made: Made | null): boolean =>
  writes.some(
    (write) =>
      write.put === 'denial' ||
      (write.put === 'domain' && write.value.continuity.lineage !== (made?.sighting.lineage ?? 0)),
  )
