// Judges a sighting that a node shows: parses it, compares it with the journal, and commits the doubt if it does not fit. A
// sighting is signed by the plane, so it cannot be forged and counts from every caller.

import { decideDoubt, doubtAlertKey, lossOf, isWorse, type Loss, type Place } from '#domain/continuity/continuity.ts'
import type { Attribution } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { SeenHead } from '#domain/continuity/sighting.ts'
import type { Clock } from '#platform/clock.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { JournalReader, Store } from '#plane/store/contract/store.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { readDomainAndAlert } from '#plane/core/domain-settings-row.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'

type JudgeParts = {
  readonly recovery: Pick<RecoveryAuthority, 'isOurStatement'>
  readonly settings: () => DomainSettings
}

/**
 * `fitting`: our journal holds all of it, or it was confirmed away. `doubtful`: it does not fit, and the store says so.
 * `foreign`: not a sighting of this domain that this plane has signed, so that nothing follows from it.
 */
export type Judged = 'fitting' | 'doubtful' | 'foreign'

export type SightingJudge = {
  judge(statement: string, node: NodeId, by: Attribution): Promise<Judged>
}

/** A thousand nodes that come at once have mostly seen the same. Short, so that a store that loses its end is noticed. */
const rememberMs = 5_000
const mostRemembered = 1_024
/** How much is missing may be learned place by place from thousands of nodes; one entry each would be a flood. */
const updateEveryMs = 10_000

export const openSightingJudge = async (
  core: FlowCore & Pick<Core, 'log'>,
  { recovery, settings }: JudgeParts,
): Promise<SightingJudge> => {
  const { clock, store } = core
  const isHere = rememberPlaces(store.journal, clock)
  const newestEntryMs = await newestBeforePlanes(store)
  let updatedMs = -Infinity

  const doubt = async (loss: Loss, judgedBy: number, node: NodeId, by: Attribution): Promise<void> => {
    updatedMs = clock.monotonicMs()
    const done = await commitDecision(core, async () => {
      const read = await readDomainAndAlert(core, doubtAlertKey)
      return decideDoubt({ ...read, loss, judgedBy, node, witness: 'node', newestEntryMs, by })
    })
    if (done.kind === 'committed') {
      core.log.error(
        { node, ...loss },
        'the store may be an older copy: nothing is issued until an operator confirms it (muster store confirm)',
      )
    }
    // The flows that were quicker each time have most likely written the same; if not, the next node to come brings it again.
    if (done.kind === 'refused') core.log.warn({ node, ...loss }, 'a doubt about the store could not be recorded')
  }

  return {
    async judge(statement, node, by) {
      const { name, continuity } = settings()
      const parsed = parseStatement('sighting', statement)
      const ours = parsed !== null && parsed.value.domain === name
      if (!ours || !recovery.isOurStatement(parsed.signed, parsed.signature)) return 'foreign'
      const seen = parsed.value
      if (seen.lineage < continuity.lineage) return 'fitting'
      const places = await placesOf(store.journal, seen.heads, seen.lineage > continuity.lineage ? null : isHere)
      const loss = lossOf(seen, continuity.lineage, places)
      if (loss === null) return 'fitting'
      const known = continuity.doubt
      const isNews = known === null || loss.lineage > known.lineage
      const isMore = known !== null && isWorse(loss, known) && clock.monotonicMs() - updatedMs > updateEveryMs
      if (isNews || isMore) await doubt(loss, continuity.lineage, node, by)
      return 'doubtful'
    },
  }
}

const entriesLookedAt = 1_000

/**
 * When the newest entry was written that no running plane can have added: each writes some at its start, and operators are
 * asked to look at what was done after this. Null: not known, or there is none.
 */
const newestBeforePlanes = async ({
  journal,
  replicas,
}: Pick<Store, 'journal' | 'replicas'>): Promise<number | null> => {
  const startedAtMs = Math.min(...(await replicas.leased()).map((replica) => replica.startedAtMs))
  const last = entriesLookedAt
  const entries = await journal.read({ after: null, last, limit: last, node: null, type: null })
  const before = entries.map(({ entry }) => entry.atMs).filter((atMs) => atMs < startedAtMs)
  return before.length === 0 ? null : Math.max(...before)
}

/** `isHere` null: how far we have come is wanted of every chain. */
const placesOf = async (
  journal: JournalReader,
  heads: readonly SeenHead[],
  isHere: ((head: SeenHead) => Promise<boolean>) | null,
): Promise<readonly Place[]> => {
  const places: Place[] = []
  let newest: ReadonlyMap<string, number> | null = null
  for (const head of heads) {
    if (isHere !== null && (await isHere(head))) {
      places.push({ head, hash: head.hash, newest: head.sequence })
      continue
    }
    // Read before the place itself: what is written meanwhile must not look as if it had been pruned.
    newest ??= new Map((await journal.heads()).map(({ chain, sequence }) => [chain, sequence]))
    const hash = await journal.hashAt(head.chain, head.sequence)
    places.push({ head, hash, newest: newest.get(head.chain) ?? null })
  }
  return places
}

const rememberPlaces = (journal: JournalReader, clock: Clock): ((head: SeenHead) => Promise<boolean>) => {
  const foundAtMs = new Map<string, number>()
  return async ({ chain, sequence, hash }) => {
    const key = `${chain}/${sequence}/${hash}`
    const nowMs = clock.monotonicMs()
    if (nowMs - (foundAtMs.get(key) ?? -Infinity) < rememberMs) return true
    if ((await journal.hashAt(chain, sequence)) !== hash) return false
    if (foundAtMs.size >= mostRemembered) foundAtMs.clear()
    foundAtMs.set(key, nowMs)
    return true
  }
}
