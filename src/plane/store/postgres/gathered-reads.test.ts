import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemTimers } from '#platform/timers.ts'
import { gatherReads } from './gathered-reads.ts'

type Question = { readonly keys: readonly string[]; answer(): void; fail(): void }

const asked = () => {
  const questions: Question[] = []
  const get = gatherReads(
    systemTimers,
    (keys) =>
      new Promise<ReadonlyMap<string, string>>((resolve, reject) =>
        questions.push({
          keys,
          answer: () => resolve(new Map(keys.filter((key) => key !== 'absent').map((key) => [key, `row of ${key}`]))),
          fail: () => reject(new Error('no connection')),
        }),
      ),
  )
  return { get, questions }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => systemTimers.soon(resolve))

test('what is asked in one turn is one question, each key in it once', async () => {
  const { get, questions } = asked()
  const answers = Promise.all(['a', 'b', 'a', 'absent'].map(get))
  await nextTurn()
  assert.deepEqual(
    questions.map(({ keys }) => keys),
    [['a', 'b', 'absent']],
  )
  questions[0]?.answer()
  assert.deepEqual(await answers, ['row of a', 'row of b', 'row of a', null])
})

test('while two are under way what is asked gathers, and goes as one when either has ended', async () => {
  const { get, questions } = asked()
  const first = get('a')
  await nextTurn()
  void get('b')
  await nextTurn()
  const later = Promise.all([get('c'), get('a'), get('d')])
  await nextTurn()
  assert.deepEqual(
    questions.map(({ keys }) => keys),
    [['a'], ['b']],
  )
  questions[0]?.answer()
  await first
  await nextTurn()
  // Also what is under way already: it may have changed since that was asked.
  assert.deepEqual(questions[2]?.keys, ['c', 'a', 'd'])
  questions[2]?.answer()
  assert.deepEqual(await later, ['row of c', 'row of a', 'row of d'])
})

test('a failed question is reported to its callers, and the next is asked all the same', async () => {
  const { get, questions } = asked()
  const failing = [get('a'), get('b')]
  await nextTurn()
  questions[0]?.fail()
  for (const one of failing) await assert.rejects(one, /no connection/)
  const next = get('a')
  await nextTurn()
  questions[1]?.answer()
  assert.equal(await next, 'row of a')
})

test('no question has more than a thousand keys', async () => {
  const { get, questions } = asked()
  const answers = Promise.all(Array.from({ length: 2500 }, (_, at) => get(`k${at}`)))
  await nextTurn()
  for (let at = 0; at < 3; at++) {
    questions[at]?.answer()
    await nextTurn()
  }
  assert.deepEqual(
    questions.map(({ keys }) => keys.length),
    [1000, 1000, 500],
  )
  assert.equal((await answers).length, 2500)
})
