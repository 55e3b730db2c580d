// Purges the record of a revoked node: reads every row that names it, page by page, and lets the domain decide. Only a plan comes here.

import { alertKey } from '#domain/alerts/alert.ts'
import type { Attribution, Decided, Row, RowTypes } from '#domain/core/change.ts'
import { certificateKey, epochDenialKey, programsHolder } from '#domain/core/certificate.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { programKey } from '#domain/programs/program.ts'
import {
  addPurging,
  addSteps,
  decidePurge,
  emptySurvey,
  nothingPurged,
  purgeBarred,
  purgePart,
  purgeStep,
  rowsAtOnce,
  type PurgeCounts,
  type PurgedKind,
  type PurgeFacts,
  type PurgeStep,
} from '#domain/revocation/purge.ts'
import { busyOver, commitDecision, commitOnce, retryLostRaces, type Done } from '#plane/core/commit-decision.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { formerNode } from '#plane/core/former-node.ts'
import { openLivedTime } from '#plane/core/lived-time.ts'
import { pages, rowPages, type PageReading } from '#plane/core/pages.ts'
import type { StoredEntry } from '#plane/store/contract/store.ts'
import { turn } from '#platform/timers.ts'

type PurgeCore = FlowCore & Pick<Core, 'timers'>
type ReadingCore = Pick<Core, 'store' | 'clock' | 'timers'>

/** `onlyIf`: a further precondition; null: it holds. */
export const purgeNode = async (
  core: PurgeCore,
  id: NodeId,
  reason: string,
  by: Attribution,
  onlyIf: (node: Row<Node>) => Refusal | null,
): Promise<Done<Decided> | Refusal> => {
  const read = async (): Promise<PurgeFacts | Refusal> => {
    const facts = await readPurge(core, id)
    if (isRefusal(facts)) return facts
    return onlyIf(facts.node) ?? purgeBarred(facts) ?? { ...facts, reason, by }
  }
  return (
    (await purgeMost(core, read)) ??
    commitDecision(core, async () => {
      const facts = await read()
      if (isRefusal(facts)) return facts
      // What came in meanwhile is more than one commit holds: an operator makes another plan.
      if (facts.survey.rows > rowsAtOnce) return busyOver('node')()
      return decidePurge(facts, await purgedBefore(core, id))
    })
  )
}

/** Commits the parts that come before the last. After a crash in between the node is a tombstone as before, and can be purged again. */
const purgeMost = (core: PurgeCore, read: () => Promise<PurgeFacts | Refusal>): Promise<Refusal | null> =>
  retryLostRaces({ tries: 8, onBusy: busyOver('node') }, async () => {
    const facts = await read()
    if (isRefusal(facts)) return facts
    let left = facts.survey.rows
    if (left <= rowsAtOnce) return null
    let steps: PurgeStep[] = []
    for await (const page of stepsOf(core, facts.node.value, facts.former.key)) {
      steps.push(...page)
      while (steps.length >= rowsAtOnce && left > rowsAtOnce) {
        const part = steps.slice(0, rowsAtOnce)
        // Not so when all of them were looked at.
        if (part.some(({ hinders }) => hinders !== null)) return 'decide-again'
        if ((await commitOnce(core, purgePart(facts, part))) === 'lost-race') return 'lost-race'
        steps = steps.slice(rowsAtOnce)
        left -= part.length
      }
      if (left <= rowsAtOnce) return null
    }
    return null
  })

export const readPurge = async (
  core: ReadingCore,
  id: NodeId,
): Promise<Omit<PurgeFacts, 'reason' | 'by'> | Refusal> => {
  const { store, clock } = core
  // Replicas of the release before would register the name anew with epoch 1.
  if (store.unfinishedUpgrade() !== null) return refuse('UPGRADE_UNFINISHED', 'a node is purged')
  const node = await store.get('node', id)
  if (node === null) return refuse('NODE_NOT_FOUND', id)
  const former = await formerNode(store, id)
  let survey = emptySurvey
  for await (const steps of stepsOf(core, node.value, former.key)) survey = addSteps(survey, steps)
  return { node, former, survey, livedMs: await openLivedTime(store, clock).nowMs(), nowMs: clock.nowMs() }
}

/** Every row that names the node, a page at a time; other work gets a turn in between. What can be many comes first. */
async function* stepsOf(
  { store, timers }: ReadingCore,
  { id, epoch }: Node,
  hash: string,
): AsyncGenerator<readonly PurgeStep[], void, void> {
  async function* every<K extends PurgedKind>(
    kind: K,
    keyOf: (value: RowTypes[K]) => string,
    where: Readonly<Record<string, string | number>> = { node: id },
    isOfNode: (value: RowTypes[K]) => boolean = () => true,
  ): AsyncGenerator<readonly PurgeStep[], void, void> {
    for await (const page of rowPages(store, kind, keyOf, { where, timers }))
      yield page.filter(({ value }) => isOfNode(value)).map((row) => purgeStep(kind, row, id, hash))
  }
  for (const holder of [id, programsHolder(id)])
    yield* every('certificate', ({ issuer, serial }) => certificateKey(issuer, serial), { node: holder })
  yield* every('key-claim', ({ spki }) => spki, { holder: id, shared: 0 })
  const isHolder = ({ holders }: RowTypes['key-claim']): boolean => holders.some(({ node }) => node === id)
  yield* every('key-claim', ({ spki }) => spki, { shared: 1 }, isHolder)
  yield* every('wireguard-key', ({ publicKey }) => publicKey)
  for (let from = 1; from <= epoch; from += epochsAtOnce) {
    const epochs = Array.from({ length: Math.min(epochsAtOnce, epoch - from + 1) }, (_, at) => from + at)
    const denials = await Promise.all(epochs.map((one) => store.get('denial', epochDenialKey(id, one))))
    yield denials.flatMap((row) => (row === null ? [] : [purgeStep('denial', row, id, hash)]))
    await turn(timers)
  }
  yield* every('order', ({ id }) => id)
  yield* every('program', programKey)
  yield* every('token', (token) => token.hash)
  yield* every('receipt', (receipt) => receipt.id)
  yield* every('alert', alertKey)
  yield* every('allocation', (allocation) => allocation.id)
  yield* every('overlay-address', ({ address }) => address)
  yield* every('name-claim', ({ name }) => name)
}

const epochsAtOnce = 100

/** What the parts of this purge have removed and kept, those of an earlier try that was cut off too. */
const purgedBefore = async ({ store }: Pick<PurgeCore, 'store'>, node: NodeId): Promise<PurgeCounts> => {
  const reading: PageReading<StoredEntry, StoredEntry['cursor']> = {
    limit: rowsAtOnce,
    read: (after, limit) =>
      store.journal.read({ after, last: null, limit, node, type: ['node.purging', 'node.purged'] }),
    placeOf: ({ cursor }) => cursor,
  }
  let sum = nothingPurged
  for await (const page of pages(reading)) for (const { entry } of page) sum = addPurging(sum, entry)
  return sum
}
