import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { nothingObserved, type Observation, type Store } from '#plane/store/contract/store.ts'
import { instanceOf, reportOf } from '../../../test/fakes/agent-words.ts'
import { openReportIntake } from './report-intake.ts'

const setUp = (most?: number) => {
  const observed = new Map<string, Observation>()
  const store = {
    observe: (node: string, seen: Partial<Observation>) =>
      void observed.set(node, { ...nothingObserved, ...observed.get(node), ...seen }),
    observation: async (node: string) => observed.get(node) ?? nothingObserved,
  } as unknown as Store
  let taken = 0
  const start = () =>
    openReportIntake({ store, log: silentLog }, { taken: () => void taken++, recalled: () => {} }, most)
  return { observed, start, intake: start(), taken: () => taken }
}

test('reports are taken in order and once; a gap is not taken, and neither is a repeat', async () => {
  const { observed, intake } = setUp()
  const outcomes = []
  for (const number of [1, 2, 2, 4, 3, 1, 4]) outcomes.push(await intake.take('n', reportOf('a', number)))
  assert.deepEqual(outcomes, ['taken', 'taken', 'repeat', 'gap', 'taken', 'repeat', 'taken'])
  assert.equal(observed.get('n')?.report?.number, 4)
  assert.deepEqual(
    [await intake.lastTaken('n', instanceOf('a')), await intake.lastTaken('n', instanceOf('b'))],
    [4, null],
  )
})

test('the same report over two channels at once is taken once', async () => {
  const { intake, taken } = setUp()
  const outcomes = await Promise.all([1, 1, 2, 2].map((number) => intake.take('n', reportOf('a', number))))
  assert.deepEqual(outcomes, ['taken', 'repeat', 'taken', 'repeat'])
  assert.equal(taken(), 2)
})

test('a plane that starts anew goes on from the report in the store, and takes what it missed for lost', async () => {
  const { intake, start } = setUp()
  for (const number of [1, 2, 3]) await intake.take('n', reportOf('a', number))
  const later = start()
  assert.equal(await later.lastTaken('n', instanceOf('a')), 3)
  assert.equal(await later.take('n', reportOf('a', 3)), 'repeat')
  // Reports 4 to 6 were acknowledged by a plane that was killed before it wrote them down.
  assert.equal(await later.take('n', reportOf('a', 7)), 'taken')
  assert.equal(await later.take('n', reportOf('a', 9)), 'gap')
})

test('another process of the node begins with its own numbers', async () => {
  const { intake } = setUp()
  await intake.take('n', reportOf('a', 1))
  assert.equal(await intake.take('n', reportOf('b', 1)), 'taken')
  assert.equal(await intake.take('n', reportOf('b', 3)), 'gap')
})

test('of more nodes than it remembers, the one that was quiet longest is looked up again', async () => {
  const { intake } = setUp(2)
  for (const node of ['n-1', 'n-2', 'n-3']) await intake.take(node, reportOf('a', 1))
  assert.equal(await intake.take('n-1', reportOf('a', 1)), 'repeat')
  assert.equal(await intake.take('n-1', reportOf('a', 2)), 'taken')
})
