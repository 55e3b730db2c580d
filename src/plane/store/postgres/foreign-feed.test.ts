import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Change } from '#domain/core/change.ts'
import type { Continuity } from '#domain/continuity/continuity.ts'
import { defaultDomainSettings, unbroken } from '#domain/core/domain-settings.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { silentLog } from '#platform/log.ts'
import type { PgRow, PgConnection, PgValue } from '#platform/postgres.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../../test/fakes/manual-timers.ts'
import { openJournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openForeignFeed } from './foreign-feed.ts'
import { usualPace } from './replica-pace.ts'
import { instantOf } from './standing-at.ts'

const self = 2
const nothingWritten: Change = { reads: [], writes: [], entries: [{} as EntryDraft] }
const hash = (sequence: number): Buffer => Buffer.from([sequence])

/** One chain, as the database has it. */
const setUp = async (t: { readonly end: number; readonly writer: number }) => {
  const clock = manualClock(0)
  let chain = t
  let continuity: Continuity = unbroken
  const entry = (sequence: number): PgRow => ({
    chain: 'c',
    sequence,
    bytes: JSON.stringify({ chain: 'c', sequence, operation: `op${sequence}-0` }),
    hash: hash(sequence),
    touched: null,
  })
  const answers: Readonly<Record<string, (values: readonly PgValue[]) => readonly PgRow[]>> = {
    'feed-chains': () => [{ chain: 'c', base: 0, end: chain.end, hash: hash(chain.end), writer: chain.writer }],
    'known-places': ([, sequences]) => {
      const [sequence] = sequences as readonly [number]
      const there = sequence <= chain.end ? hash(sequence) : null
      return [{ chain: 'c', base: 0, end: chain.end, hash: there }]
    },
    'feed-rows-domain': () => [
      { key: 'domain', version: 1, doc: JSON.stringify({ ...defaultDomainSettings('lab.example'), continuity }) },
    ],
    'feed-entries': ([, from]) => {
      const [first] = from as readonly [number]
      return Array.from({ length: chain.end + 1 - first }, (_, at) => entry(first + at))
    },
  }
  const connection = {
    async run({ name }: { readonly name: string }, values: readonly PgValue[] = []) {
      const rows = answers[name]?.(values) ?? []
      return { rows, count: rows.length }
    },
  } as Pick<PgConnection, 'run'> as PgConnection
  const caughtUp: number[] = []
  const behind: string[] = []
  const published: number[] = []
  const lineages: number[] = []
  const witness = openJournalWitness()
  const feed = openForeignFeed(
    { timers: manualTimers(clock), log: silentLog },
    {
      renewal: () => ({ connection, number: self, sentAt: instantOf(clock), clock: null }),
      caughtUp: ({ monotonicMs }) => void caughtUp.push(monotonicMs),
      fallBehind: (why) => void behind.push(why),
      onRenewed: () => {},
      confirmed: (look) => look(connection),
    },
    witness,
    usualPace,
  )
  feed.onForeignCommit(({ entries }) => published.push(...entries.map(({ entry: { sequence } }) => sequence)))
  feed.onForeignCommit(({ writes }) => {
    for (const write of writes) if (write.put === 'domain') lineages.push(write.value.continuity.lineage)
  })
  await feed.start()
  return {
    feed,
    caughtUp,
    behind,
    published,
    lineages,
    witness,
    async look(now: typeof t, confirmed: Continuity = continuity) {
      chain = now
      continuity = confirmed
      clock.advance(1000)
      feed.look()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

test('what another wrote before its chain was taken over is not taken for one that is about to be answered here', async () => {
  const { feed, caughtUp, published, look } = await setUp({ end: 1, writer: 1 })
  const { promise, resolve } = Promise.withResolvers<'lost-race'>()
  const underWay = feed.commitHere(nothingWritten, () => promise)
  await look({ end: 2, writer: self })
  assert.deepEqual([published, caughtUp], [[], [0]], 'it may be our own, and may be the last word of its former writer')
  resolve('lost-race')
  await underWay
  await new Promise((done) => setImmediate(done))
  assert.deepEqual([published, caughtUp], [[2], [0, 1000]])
})

test('under its own chain a replica that waits for its own answers is up to date', async () => {
  const { feed, caughtUp, look } = await setUp({ end: 1, writer: 1 })
  await look({ end: 2, writer: self })
  void feed.commitHere(nothingWritten, () => new Promise(() => {}))
  await look({ end: 3, writer: self })
  assert.deepEqual(caughtUp, [0, 1000, 2000])
})

test('R1: a database that was set back is a loss at once, and stays one when its chain is as long as it was', async () => {
  const { behind, published, look, witness } = await setUp({ end: 5, writer: 1 })
  await look({ end: 3, writer: 1 })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(published, [])
  assert.match(behind.join(), /this plane knows entry 5 of chain c, and it ends at 3.*muster store confirm/)
  const loss = { why: 'missing', chain: 'c', sequence: 5, hash: '05', ours: 3, lineage: 0 }
  assert.deepEqual(witness.loss(), loss)
  await look({ end: 5, writer: 1 })
  assert.deepEqual(witness.loss(), loss)
})

test('R1: a replica that looks only after the loss was confirmed does not lose again, and goes on from there', async () => {
  const { caughtUp, published, look, witness } = await setUp({ end: 5, writer: 1 })
  const ends: (string | null)[] = []
  witness.onLoss((loss) => ends.push(loss?.chain ?? null))
  await look({ end: 3, writer: 1 }, { lineage: 1, doubt: null })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([witness.loss(), witness.lineage(), ends], [null, 1, [null]])
  assert.deepEqual(witness.places(), [{ chain: 'c', sequence: 3, hash: '03' }])
  assert.deepEqual(caughtUp, [0, 1000], 'it serves again')
  await look({ end: 4, writer: 1 })
  assert.deepEqual(published, [4])
  await look({ end: 2, writer: 1 })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([witness.loss()?.sequence, witness.loss()?.lineage], [4, 1], 'the next loss is one')
})

test('R1: a confirmation whose entry was not read is found in the row of the domain', async () => {
  const { lineages, look, witness } = await setUp({ end: 5, writer: 1 })
  await look({ end: 3, writer: 1 })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(witness.loss()?.sequence, 5)
  const loss = { why: 'missing', chain: 'c', sequence: 5, ours: 3, lineage: 1 } as const
  await look({ end: 3, writer: 1 }, { lineage: 1, doubt: { ...loss, sinceMs: 0, node: 'a', newestEntryMs: null } })
  assert.deepEqual(lineages, [], 'in doubt is not confirmed')
  await look({ end: 3, writer: 1 }, { lineage: 1, doubt: null })
  assert.deepEqual(lineages, [1])
})
