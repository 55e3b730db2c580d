// Tasks on their way to a session: what was dispatched arrives, whatever fails in between and whichever replica dispatched it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFeed } from '#plane/core/feed.ts'
import { openTaskDispatcher, type TaskTaker } from '#plane/tasks/dispatcher.ts'
import { openTaskSigners, type TaskSigner } from '#plane/tasks/task-signers.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { settingsNow } from '../fakes/settings-now.ts'
import { eventually } from '../process/eventually.ts'
import { operator } from './authority-setup.ts'
import { principalOf, setUpTasks, storeThatFails } from './tasks-setup.ts'

type Setup = Awaited<ReturnType<typeof setUpTasks>>
type Taker = TaskTaker & { alive: boolean; drainedAtMs: number | null }

const minute = 60_000

const taker = (): Taker => ({ principal: principalOf('gpu-001'), alive: true, drainedAtMs: null })

/** Keeps the ids of what is sent. */
const inbox = () => {
  const ids: string[] = []
  return { ids, send: (envelope: string) => void ids.push(parseStatement('task', envelope)?.value.id ?? envelope) }
}

const openOn = (plane: Setup, parts: Partial<Setup['core']> = {}, signer: TaskSigner = plane.taskSigners) =>
  openTaskDispatcher({ ...plane.core, ...parts }, 'test', signer)

const dispatches = async (plane: Setup): Promise<number> =>
  (await plane.story()).filter(({ type }) => type === 'task.dispatched').length

test('a task that another replica sent into the dead session of a node that has moved is sent to the node', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  // The other replica hears of what is dispatched, and of nothing else: the old one claims the task.
  const feed = openFeed()
  plane.feed.subscribe('tasks', (committed) => {
    if (committed.entries.some(({ entry }) => entry.type === 'task.dispatched')) feed.publish(committed)
  })
  const [before, now] = [openOn(plane), openOn(plane, { feed })]
  const [dead, live] = [inbox(), inbox()]
  await before.greeted(taker(), new Set(), dead.send)
  await now.greeted(taker(), new Set(), live.send)
  const { id } = await plane.queue('gpu-001')
  await eventually('the node to be sent the task', () => live.ids.length > 0)
  assert.deepEqual([dead.ids, live.ids, await dispatches(plane)], [[id], [id], 1])
})

test('a session that is drained, since its node has moved, takes nothing', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  const { ids, send } = inbox()
  await openOn(plane).greeted({ ...taker(), drainedAtMs: 1 }, new Set(), send)
  assert.deepEqual([ids, (await plane.show(id)).state], [[], 'queued'])
})

test('what was sent over a session that ended goes to the older one that is left', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const dispatcher = openOn(plane)
  const [older, newer] = [taker(), taker()]
  const [left, lost] = [inbox(), inbox()]
  await dispatcher.greeted(older, new Set(), left.send)
  await dispatcher.greeted(newer, new Set(), lost.send)
  const { id } = await plane.queue('gpu-001')
  await eventually('the newer session to be sent the task', () => lost.ids.length > 0)
  assert.deepEqual(left.ids, [])
  newer.alive = false
  dispatcher.left(newer)
  await eventually('the older session to be sent the task', () => left.ids.length > 0)
  assert.deepEqual([left.ids, lost.ids], [[id], [id]])
})

test('a look that the database fails is made again, and the task that was dispatched before is sent', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  // By a plane that died.
  await plane.dispatch('gpu-001')
  const isLook = (_kind: unknown, query: unknown) =>
    (query as { where?: { state?: string } }).where?.state === 'dispatched'
  const store = storeThatFails(plane.store, { method: 'list', when: 'before', on: isLook })
  const { ids, send } = inbox()
  await openOn(plane, { store }).greeted(taker(), new Set(), send)
  assert.deepEqual(ids, [])
  plane.timers.advance(1000)
  await eventually('the task to be sent', () => ids.length > 0)
  assert.deepEqual(ids, [id])
})

test('a task whose commit lost its answer, and one that could not be signed at first, are sent all the same', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const isDispatch = (change: unknown) => JSON.stringify(change).includes('task.dispatched')
  const store = storeThatFails(plane.store, { method: 'commit', when: 'after', on: isDispatch })
  let signed = 0
  const signer: TaskSigner = {
    ...plane.taskSigners,
    sign(value) {
      // The first one is signed before its commit, and once more to be sent again.
      if (signed++ === 2) throw new Error('the private key is not here')
      return plane.taskSigners.sign(value)
    },
  }
  const dispatcher = openOn(plane, { store }, signer)
  const { ids, send } = inbox()
  const first = await plane.queue('gpu-001')
  await dispatcher.greeted(taker(), new Set(), send)
  assert.deepEqual([ids, (await plane.show(first.id)).state], [[], 'dispatched'])
  plane.timers.advance(1000)
  await eventually('the first task to be sent', () => ids.length === 1)
  const second = await plane.queue('gpu-001')
  await eventually('the second one not to be signed', () => signed === 3)
  await eventually('the second one to be sent', () => {
    plane.timers.advance(1000)
    return ids.length === 2
  })
  assert.deepEqual([ids, await dispatches(plane)], [[first.id, second.id], 2])
})

test('however many ask while the database fails, one attempt follows', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const store = new Proxy(plane.store, {
    get: (from, name) =>
      name === 'list' ? async () => Promise.reject(new Error('connection lost')) : Reflect.get(from, name),
  })
  const dispatcher = openOn(plane, { store })
  const one = taker()
  const waiting = plane.timers.waiting()
  for (let time = 0; time < 5; time++) await dispatcher.greeted(one, new Set(), () => {})
  assert.equal(plane.timers.waiting(), waiting + 1)
})

test('a node that says again and again that it has nothing has its tasks signed once a minute', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  let signed = 0
  const sign: TaskSigner['sign'] = (value) => {
    signed++
    return plane.taskSigners.sign(value)
  }
  const dispatcher = openOn(plane, {}, { ...plane.taskSigners, sign })
  const { id } = await plane.queue('gpu-001')
  const one = taker()
  const { ids, send } = inbox()
  for (let time = 0; time < 20; time++) await dispatcher.greeted(one, new Set(), send)
  assert.deepEqual([signed, ids], [1, [id]])
  // It has lost the task, and says so once: within a minute it is sent it again, and not a third time.
  for (let time = 0; time < 3; time++) {
    plane.clock.advance(minute)
    await dispatcher.upkeep.run(plane.store)
    await eventually('it to be sent again', () => ids.length === 2)
  }
  assert.deepEqual([signed, ids], [2, [id, id]])
  const next = inbox()
  await dispatcher.greeted(taker(), new Set([id]), next.send)
  assert.deepEqual(next.ids, [])
  await dispatcher.greeted(taker(), new Set(), next.send)
  assert.deepEqual(next.ids, [id], 'a new session has been sent nothing')
})

test('a dispatch that nothing told of is found within a minute, and sent once', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const dispatcher = openOn(plane, { feed: openFeed() })
  const { ids, send } = inbox()
  await dispatcher.greeted(taker(), new Set(), send)
  const { id } = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  assert.deepEqual(ids, [])
  for (let time = 0; time < 3; time++) {
    await dispatcher.upkeep.run(plane.store)
    await eventually('the task to be sent', () => ids.length > 0)
    plane.clock.advance(minute)
  }
  assert.deepEqual(ids, [id])
})

test('a replica that has not heard of a withdrawal signs nothing with that signer, neither anew nor again', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const feed = openFeed()
  const beforeFirst = (): Promise<void> => Promise.resolve()
  const parts = { custody: await plane.custody(), settings: await settingsNow(plane.store, feed), beforeFirst }
  const late = await openTaskSigners({ ...plane.core, feed }, parts)
  const stolen = late.key() ?? ''
  const again = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  plane.clock.advance(1)
  const anew = await plane.queue('gpu-001')
  await plane.taskSigners.withdraw({ key: stolen, reason: 'stolen' }, operator)
  assert.equal(late.key(), stolen, 'it has not heard')
  const envelopes: string[] = []
  const one = taker()
  const dispatcher = openOn(plane, {}, late)
  await dispatcher.greeted(one, new Set(), (envelope) => void envelopes.push(envelope))
  assert.deepEqual([envelopes, (await plane.show(anew.id)).state], [[], 'queued'])
  await eventually('it to have looked', () => late.key() === plane.taskSigners.key())
  plane.timers.advance(1000)
  await eventually('both to be sent', () => envelopes.length === 2)
  const says = envelopes.map((envelope) => parseStatement('task', envelope)?.value)
  assert.deepEqual(
    says.map((said) => [said?.id, said?.key]),
    [again.id, anew.id].map((id) => [id, plane.taskSigners.key()]),
  )
  assert.equal((await plane.show(anew.id)).dispatched.signer, plane.taskSigners.key())
})

test('what was dispatched before a halt is sent again to a new session only when the halt is over', async (t) => {
  const plane = await setUpTasks(t, 'gpu-001')
  const { id } = await plane.queue('gpu-001')
  await plane.dispatch('gpu-001')
  await plane.ask('POST', '/v1/issuance/halt', { reason: 'audit' })
  const { ids, send } = inbox()
  await openOn(plane).greeted(taker(), new Set(), send)
  assert.deepEqual(ids, [])
  await plane.ask('POST', '/v1/issuance/resume', {})
  await eventually('the task to be sent again', () => ids.length > 0)
  assert.deepEqual(ids, [id])
})
