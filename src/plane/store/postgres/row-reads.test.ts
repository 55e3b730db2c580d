import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PgResult } from '#platform/postgres.ts'
import { systemTimers } from '#platform/timers.ts'
import { openPgSql } from './pg-sql.ts'
import { openRowReads } from './row-reads.ts'

/** Answers when told to, with the row as it was when it was asked. */
const setUp = () => {
  const asked: (() => void)[] = []
  let version = 1
  const answer = (): Promise<PgResult> => {
    const row = { wanted_key: 'domain', key: 'domain', version, doc: '{}' }
    return new Promise((resolve) => asked.push(() => resolve({ rows: [row], count: 1 })))
  }
  const access = { read: answer, write: answer }
  const reads = openRowReads(openPgSql(systemTimers, access, { self: 1 }), () => true)
  const get = async (kind: 'domain' | 'node'): Promise<number | undefined> => (await reads.get(kind, 'domain'))?.version
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  return {
    reads,
    get,
    turn,
    asked,
    change: () => {
      version++
      reads.forgetPolicy('domain', 'domain')
    },
  }
}

test('policy is read once, until it changes; anything else is read each time', async () => {
  const { get, turn, asked, change } = setUp()
  for (const [kind, reads] of [
    ['domain', 1],
    ['domain', 1],
    ['node', 2],
    ['node', 3],
  ] as const) {
    const found = get(kind)
    await turn()
    assert.equal(asked.length, reads)
    asked.at(-1)?.()
    assert.equal(await found, 1)
  }
  change()
  const found = get('domain')
  await turn()
  asked.at(-1)?.()
  assert.equal(await found, 2)
})

test('what changed while it was read is not kept as it was before', async () => {
  const { get, turn, asked, change } = setUp()
  const before = get('domain')
  await turn()
  change()
  asked[0]?.()
  assert.equal(await before, 1)
  const after = get('domain')
  await turn()
  asked[1]?.()
  assert.equal(await after, 2)
})
