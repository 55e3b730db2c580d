import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  abandon,
  complete,
  decline,
  forgettableFromMs,
  forRepeat,
  intend,
  isToBeFound,
  lastPossibleMs,
  mostAttempts,
  refusedThere,
  replace,
  settle,
  tryAgain,
  type Order,
  type OrderStep,
} from './order.ts'

const startMs = 1_700_000_000_000
const day = 86_400_000

const ordered = (serial: string | null, holder = 1): Order =>
  intend({
    id: 'order-1',
    issuer: 'issuer-1',
    subject: { kind: 'node', node: 'gpu-1', epoch: 1 },
    spki: 'a'.repeat(64),
    request: 'AAAA',
    issuedAtMs: startMs,
    lifetimeMs: day,
    token: null,
    holder,
    serial,
    nowMs: startMs,
  })

const taken = (step: OrderStep | null): OrderStep => {
  assert.ok(step !== null, 'the step was possible')
  return step
}

const fates = ({ attempts }: Order): string[] => attempts.map(({ fate }) => fate.kind)

test('an order is issued with the serial that was chosen', () => {
  const { order, revoke, bansKey } = taken(complete(ordered('11'), { holder: 1, serial: '11', nowMs: startMs + 5 }))
  assert.deepEqual(order.state, { kind: 'issued', serial: '11', atMs: startMs + 5 })
  assert.deepEqual([fates(order), revoke, bansKey], [['kept'], [], false])
})

test('an order is issued with the serial that the issuer chose', () => {
  const { order } = taken(complete(ordered(null), { holder: 1, serial: '77', nowMs: startMs }))
  assert.deepEqual(fates(order), ['kept'])
})

test('a certificate with another serial than the chosen one is never kept', () => {
  assert.throws(() => complete(ordered('11'), { holder: 1, serial: '12', nowMs: startMs }), /another serial/)
})

test('only the replica that holds an order takes a step with it', () => {
  const order = ordered('11', 1)
  const other = { holder: 2, nowMs: startMs }
  assert.equal(complete(order, { ...other, serial: '11' }), null)
  assert.equal(tryAgain(order, { ...other, serial: '12' }), null)
  assert.equal(refusedThere(order, { ...other, why: 'no' }), null)
  assert.equal(decline(order, { ...other, why: 'no', serial: '11' }), null)
})

test('a second attempt has a serial of its own, and the first is revoked in the same step', () => {
  const { order, revoke } = taken(tryAgain(ordered('11'), { holder: 1, serial: '12', nowMs: startMs + 1 }))
  assert.deepEqual([fates(order), revoke], [['orphan', 'open'], ['11']])
  const done = taken(complete(order, { holder: 1, serial: '12', nowMs: startMs + 2 }))
  assert.deepEqual([fates(done.order), done.revoke], [['orphan', 'kept'], []])
})

test('a serial is not sent for the second time', () => {
  assert.throws(() => tryAgain(ordered('11'), { holder: 1, serial: '11', nowMs: startMs }), /second time/)
})

test('an order is tried a few times only', () => {
  let order = ordered('1')
  for (let tried = 1; tried < mostAttempts; tried++)
    order = taken(tryAgain(order, { holder: 1, serial: `${tried + 1}`, nowMs: startMs })).order
  assert.equal(tryAgain(order, { holder: 1, serial: '99', nowMs: startMs }), null)
})

test('an order that its issuer refused waits for its node, and its key stays good', () => {
  const refused = taken(refusedThere(ordered('11'), { holder: 1, why: '403', nowMs: startMs }))
  assert.deepEqual([refused.order.state.kind, fates(refused.order), refused.revoke], ['lost', ['unsigned'], []])
  const { bansKey } = taken(abandon(refused.order, 'another key', startMs))
  assert.equal(bansKey, false, 'nothing was signed for it')
})

test('an order that was refused after an attempt without an answer keeps the orphan', () => {
  const second = taken(tryAgain(ordered('11'), { holder: 1, serial: '12', nowMs: startMs })).order
  const { order } = taken(refusedThere(second, { holder: 1, why: '403', nowMs: startMs }))
  assert.deepEqual([order.state.kind, fates(order)], ['lost', ['orphan', 'unsigned']])
})

test('a certificate that is a lie is revoked under the serial that it has, and under the one that was asked for', () => {
  const { order, revoke } = taken(decline(ordered('11'), { holder: 1, why: 'subject', serial: '99', nowMs: startMs }))
  assert.deepEqual([order.state.kind, revoke], ['lost', ['11', '99']])
})

test('a live holder is waited for; a request joins what is under way in its own process', () => {
  const order = ordered('11', 1)
  assert.equal(forRepeat(order, true, new Set([2])), 'join')
  assert.equal(forRepeat(order, false, new Set([1])), 'wait')
  assert.equal(forRepeat(order, false, new Set([2])), 'settle')
  assert.equal(settle(order, { others: new Set([1]), found: null, nowMs: startMs }), null)
})

test('an order whose holder is gone becomes lost, with its serial in the outbox', () => {
  const { order, revoke, bansKey } = taken(settle(ordered('11'), { others: new Set([2]), found: null, nowMs: startMs }))
  assert.deepEqual([order.state.kind, fates(order), revoke, bansKey], ['lost', ['orphan'], ['11'], false])
  assert.equal(forRepeat(order, false, new Set([2])), 'replace')
})

test('where the issuer chooses serials, what is not found may exist until its last possible end', () => {
  assert.ok(isToBeFound(ordered(null)) && !isToBeFound(ordered('11')))
  const { order, revoke } = taken(settle(ordered(null), { others: new Set(), found: null, nowMs: startMs + 9 }))
  assert.deepEqual(order.attempts[0]?.fate, { kind: 'may-exist', untilMs: startMs + day })
  assert.deepEqual(revoke, [])
  const found = taken(settle(ordered(null), { others: new Set(), found: '77', nowMs: startMs }))
  assert.deepEqual([fates(found.order), found.revoke], [['orphan'], ['77']])
})

test('a repeat with the same key replaces a lost order and bans nothing', () => {
  const lost = taken(settle(ordered('11'), { others: new Set(), found: null, nowMs: startMs })).order
  const { order, revoke, bansKey } = taken(replace(lost, 'order-2', startMs + 1))
  assert.deepEqual([order.state, revoke, bansKey], [{ kind: 'replaced', by: 'order-2', atMs: startMs + 1 }, [], false])
  assert.equal(abandon(order, 'another key', startMs), null)
})

test('a lost order that is not repeated bans its key', () => {
  const lost = taken(settle(ordered('11'), { others: new Set(), found: null, nowMs: startMs })).order
  const { order, bansKey } = taken(abandon(lost, 'another key was enrolled', startMs))
  assert.deepEqual([order.state.kind, bansKey], ['abandoned', true])
})

test('an order whose time is over bans nothing: what may have been signed has ended', () => {
  const lost = taken(settle(ordered('11'), { others: new Set(), found: null, nowMs: startMs })).order
  const { order, bansKey } = taken(abandon(lost, 'its time is over', lastPossibleMs(lost)))
  assert.deepEqual([order.state.kind, bansKey], ['abandoned', false])
})

test('an order that is over is forgotten when nothing of it can be valid, an open one never', () => {
  assert.equal(forgettableFromMs(ordered('11'), 60_000), null)
  const { order } = taken(complete(ordered('11'), { holder: 1, serial: '11', nowMs: startMs }))
  assert.equal(forgettableFromMs(order, 60_000), startMs + day + 60_000)
})

// A few replicas, an issuer that signs or does not, and crashes: whatever happens, nothing that was signed is out of sight.

type World = {
  order: Order
  signed: Set<string>
  sent: string[]
  outbox: Set<string>
  leased: Set<number>
  bans: number
  nowMs: number
}

const events = fc.constantFrom('sign', 'again', 'complete', 'refuse', 'lie', 'crash', 'settle', 'replace', 'abandon')

const run = (chosen: boolean, happened: readonly string[]): World => {
  let next = 17
  const fresh = (): string => (next++).toString(16)
  const first = chosen ? fresh() : null
  const world: World = {
    order: ordered(first),
    signed: new Set(),
    sent: first === null ? [] : [first],
    outbox: new Set(),
    leased: new Set([1, 2]),
    bans: 0,
    nowMs: startMs,
  }
  let answer: string | null = null
  const take = (step: OrderStep | null): void => {
    if (step === null) return
    for (const serial of step.revoke) world.outbox.add(serial)
    if (step.bansKey) world.bans++
    world.order = step.order
  }
  for (const event of happened) {
    world.nowMs += 1000
    const { order, nowMs } = world
    const by = { holder: 1, nowMs }
    const last = order.attempts.at(-1)
    const alive = world.leased.has(1)
    if (event === 'sign' && last?.fate.kind === 'open' && answer === null)
      world.signed.add((answer = last.serial ?? fresh()))
    if (event === 'again' && alive) {
      const serial = chosen ? fresh() : null
      const step = tryAgain(order, { ...by, serial })
      if (step !== null) answer = null
      if (step !== null && serial !== null) world.sent.push(serial)
      take(step)
    }
    if (event === 'complete' && alive && answer !== null) take(complete(order, { ...by, serial: answer }))
    if (event === 'refuse' && alive && answer === null) take(refusedThere(order, { ...by, why: 'no' }))
    if (event === 'lie' && alive && answer !== null) take(decline(order, { ...by, why: 'a lie', serial: answer }))
    if (event === 'crash') world.leased.delete(1)
    if (event === 'settle') take(settle(order, { others: world.leased, found: chosen ? null : answer, nowMs }))
    if (event === 'replace') take(replace(order, 'order-2', nowMs))
    if (event === 'abandon' && order.state.kind === 'lost') take(abandon(order, 'revoked', nowMs))
  }
  return world
}

test('whatever happens, one certificate at most is kept, and all others are revoked or counted', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(events, { maxLength: 14 }), (chosen, happened) => {
      const { order, signed, sent, outbox, bans } = run(chosen, happened)
      const kept = order.attempts.flatMap(({ fate }) => (fate.kind === 'kept' ? [fate.serial] : []))
      assert.equal(kept.length, order.state.kind === 'issued' ? 1 : 0)
      assert.equal(new Set(sent).size, sent.length, 'a serial is sent once')
      assert.ok(
        kept.every((serial) => !outbox.has(serial)),
        'what is kept is not revoked',
      )
      const mayExist = order.attempts.filter(({ fate }) => fate.kind === 'may-exist').length
      const open = order.attempts.filter(({ fate }) => fate.kind === 'open').length
      const unseen = [...signed].filter((serial) => !kept.includes(serial) && !outbox.has(serial))
      assert.ok(unseen.length <= mayExist + open, 'what was signed and not kept is known to be so')
      if (chosen) assert.ok(unseen.length <= open)
      assert.equal(open, order.state.kind === 'intended' ? 1 : 0, 'an order that nobody works on has nothing open')
      assert.ok(bans <= 1)
      if (bans === 1) assert.equal(order.state.kind, 'abandoned')
      assert.ok(lastPossibleMs(order) >= startMs + day)
    }),
  )
})
