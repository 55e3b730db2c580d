// A plane that dies between the intent and the certificate of an outside issuer: at each point the node's repeat gets a certificate, and
// whatever else may have been signed is revoked, or counted until it has ended.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { certificateKey } from '#domain/core/certificate.ts'
import type { Change } from '#domain/core/change.ts'
import { settle } from '#domain/issuers/order.ts'
import type { Issued } from '#plane/identity/issue.ts'
import { generateKey } from '#pki/keys.ts'
import { keyId } from '#pki/spki.ts'
import { signingOrder } from '../fakes/issuer-rows.ts'
import { eventually } from '../process/eventually.ts'
import { onPostgres } from '../process/store-under-test.ts'
import { change } from '../store/harness.ts'
import { setUpOutside, type OutsidePlane } from './outside-setup.ts'
import { codeOf, newCsr } from './recovery-setup.ts'

type Setup = Awaited<ReturnType<typeof setUpOutside>>

const forever = <T>(): Promise<T> => new Promise(() => {})
const writes =
  (kind: string) =>
  (change: Change): boolean =>
    change.writes.some(({ put }) => put === kind)
const says =
  (type: string) =>
  (change: Change): boolean =>
    change.entries.some((entry) => entry.type === type)

type Point = {
  /** Makes the plane die there, and resolves when it has come so far. */
  readonly die: (setup: Setup) => () => Promise<unknown>
  /** How many certificates the issuer has signed by then. */
  readonly signed: number
  /** The repeat gets that very certificate. */
  readonly isSame?: true
}

const isAsked = ({ fake }: Setup) => eventually('the issuer to be asked', () => fake.asked.length > 0)
/** Of a plane that dies meanwhile: what comes of it later, on a store that is closed, is nobody's. */
const untilDeath = (asked: Promise<unknown>): void => void asked.catch(() => {})

/** Dies at that commit, and nothing is committed any more. Until it has come so far it still reads. */
const diesAt = ({ plane }: Setup, what: string, at: (change: Change) => boolean) => {
  let reached = false
  plane.crash.next = { at: (change) => (reached ||= at(change)), commits: 'never' }
  return () => eventually(what, () => reached)
}

const points: Readonly<Record<string, Point>> = {
  'the decision and the first commit': {
    signed: 0,
    die: (setup) => diesAt(setup, 'the first commit', writes('order')),
  },
  'the first commit and the first byte': {
    signed: 0,
    die: (setup) => {
      setup.fake.answer = () => forever()
      return () => isAsked(setup)
    },
  },
  'the first byte and the answer': {
    signed: 1,
    die: (setup) => {
      setup.fake.answer = (attempt) => {
        setup.fake.sign(attempt)
        return forever()
      }
      return () => isAsked(setup)
    },
  },
  'the answer and the second commit': {
    signed: 1,
    die: (setup) => diesAt(setup, 'the second commit', writes('certificate')),
  },
  'the second commit and the reply': {
    signed: 1,
    isSame: true,
    die: (setup) => {
      setup.plane.crash.next = { at: writes('certificate'), commits: 'unheard' }
      return () => eventually('the certificate', async () => (await setup.plane.certified()).length > 0)
    },
  },
  'a violation and its record': {
    signed: 1,
    die: (setup) => {
      setup.fake.answer = async (attempt) =>
        setup.fake.sign(attempt, { order: { publicKey: generateKey('p256').spki } })
      return diesAt(setup, 'its record', says('issuer.violation'))
    },
  },
}

/** Machines come again while an order of theirs is being settled. */
const repeated = async (plane: OutsidePlane, secret: string, csr: string): Promise<Issued> => {
  const first = await plane.enroll(secret, csr, null)
  if (first.kind === 'issued') return first
  assert.equal(codeOf(first), 'BUSY', 'what the issuer has signed is looked for by the leader')
  await plane.sweep()
  const second = await plane.enroll(secret, csr, null)
  assert.equal(second.kind, 'issued', JSON.stringify(second))
  return second
}

for (const takesSerial of [true, false])
  for (const [name, point] of Object.entries(points))
    test(`a plane that dies between ${name}, under an issuer that ${takesSerial ? 'takes our serials' : 'chooses serials'}`, async (t) => {
      const setup = await setUpOutside(t, { takesSerial })
      const { plane, fake } = setup
      const { answer } = fake
      const [secret, csr] = [await plane.invite('n1'), newCsr()]
      const reached = point.die(setup)
      untilDeath(plane.enroll(secret, csr, null))
      await reached()
      assert.equal(fake.signed.length, point.signed)
      fake.answer = answer
      const next = await setup.restart()
      const outcome = await repeated(next, secret, csr)

      const { serial } = outcome.certificate
      assert.deepEqual(await next.certified(), [serial], 'one certificate has a row')
      const [before] = fake.signed
      if (point.isSame === true) assert.equal(serial, before?.serial)
      const orphans = fake.signed.filter((one) => one.serial !== serial)
      for (const one of orphans) {
        const row = await next.store.get('certificate', certificateKey(keyId(fake.issuing.key.spki), one.serial))
        assert.equal(row, null, 'an orphan opens nothing')
      }
      // A lie under another key than the order's cannot be found by its key; it may exist until it has ended.
      const isLie = name.startsWith('a violation')
      const outbox = await next.toBeRevoked()
      const mayExist = (await next.orders()).flatMap(({ attempts }) =>
        attempts.filter(({ fate }) => fate.kind === 'may-exist'),
      )
      if (takesSerial || !isLie)
        assert.deepEqual(
          orphans.filter((one) => !outbox.includes(one.serial)),
          [],
        )
      else assert.equal(mayExist.length, 1)
      // What was chosen and perhaps never sent is revoked as well: it does no harm.
      const asked = takesSerial && point.isSame !== true ? fake.asked.slice(0, -1).map((one) => one.serial) : []
      assert.deepEqual(
        asked.filter((one) => !outbox.includes(one ?? '')),
        [],
      )
      assert.deepEqual(await next.rows('key-ban'), [])
      const [token] = await next.rows('token')
      assert.equal(token?.state.kind, 'used')
      await next.firstUse('n1')
    })

test('what cannot be looked for may exist until its last possible end, and is named', async (t) => {
  const setup = await setUpOutside(t, { takesSerial: false })
  const { plane, fake, clock } = setup
  const { answer } = fake
  fake.canBeSearched = false
  fake.answer = (attempt) => {
    fake.sign(attempt)
    return forever()
  }
  const [secret, csr] = [await plane.invite('n1'), newCsr()]
  untilDeath(plane.enroll(secret, csr, null))
  await isAsked(setup)
  fake.answer = answer
  const next = await setup.restart()
  await repeated(next, secret, csr)
  const [found] = await next.store.list('order', {
    where: { orphaned: 1, issuer: fake.issuer.id },
    after: null,
    limit: 9,
  })
  const [attempt] = found?.value.attempts ?? []
  assert.deepEqual(attempt?.fate, { kind: 'may-exist', untilMs: clock.nowMs() + 86_400_000 })
  assert.equal(found?.value.state.kind, 'replaced')
})

test('a search among many serials leaves turns to others', async (t) => {
  const setup = await setUpOutside(t, { takesSerial: false })
  const { plane, fake } = setup
  fake.answer = () => forever()
  void plane.enroll(await plane.invite('n1'), newCsr(), null)
  await isAsked(setup)
  const next = await setup.restart()
  let turns = 0
  fake.look = async (known) => {
    turns = await turnsDuring(async () => {
      for (let serial = 0; serial < 1000; serial++) await known(serial.toString(16).padStart(32, '1'))
    })
  }
  await next.sweep()
  assert.ok(turns >= 10, `${turns} turns`)
})

test('a search that takes its time holds up no other one, and four go on at once', async (t) => {
  const setup = await setUpOutside(t, { takesSerial: false })
  const { plane, fake } = setup
  fake.answer = (attempt) => {
    fake.sign(attempt)
    return forever()
  }
  for (let at = 0; at < 8; at++) untilDeath(plane.enroll(await plane.invite(`n${at}`), newCsr(), null))
  await eventually('the issuer to be asked', () => fake.asked.length === 8)
  const next = await setup.restart()
  const [slow, four] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const seen = { begun: 0, ended: 0, most: 0 }
  fake.look = async () => {
    const isFirst = seen.begun++ === 0
    seen.most = Math.max(seen.most, seen.begun - seen.ended)
    if (seen.begun === 4) four.resolve()
    await (isFirst ? slow.promise : four.promise)
    seen.ended++
  }
  const swept = next.sweep()
  const open = async () => (await next.orders()).filter(({ state }) => state.kind === 'intended').length
  await eventually('the other seven to be settled', async () => (await open()) === 1)
  assert.deepEqual([seen.ended, seen.most], [7, 4])
  slow.resolve()
  await swept
  assert.ok((await next.orders()).every(({ state }) => state.kind === 'lost'))
  assert.deepEqual((await next.toBeRevoked()).toSorted(), fake.signed.map(({ serial }) => serial).toSorted())
})

test('a sweep of the orders of a whole fleet leaves turns to others', async (t) => {
  const { plane, clock } = await setUpOutside(t)
  const orders = Array.from({ length: 600 }, (_, at) =>
    signingOrder({
      ...{ id: `order-${1000 + at}`, issuedAtMs: clock.nowMs(), subject: { kind: 'node', node: `n${at}`, epoch: 1 } },
      ...{ attempts: [], state: { kind: 'lost', why: 'no', sinceMs: clock.nowMs() } },
    }),
  )
  const reads = orders.map(({ id }) => ({ row: 'order', key: id, version: 0 }) as const)
  const outcome = await plane.store.commit(
    change(
      reads,
      orders.map((value) => ({ put: 'order', value })),
    ),
  )
  assert.notEqual(outcome, 'lost-race')
  const turns = await turnsDuring(() => plane.sweep())
  assert.ok(turns >= 5, `${turns} turns`)
})

const turnsDuring = async (run: () => Promise<void>): Promise<number> => {
  let turns = 0
  let isOver = false
  const tick = (): void => {
    if (isOver) return
    turns++
    setImmediate(tick)
  }
  setImmediate(tick)
  await run()
  isOver = true
  return turns
}

test('a renewal and a recovery that were under way are repeated as well', async (t) => {
  const setup = await setUpOutside(t)
  const { plane, fake } = setup
  const key = generateKey('p256')
  const { counter } = await plane.recoverable('n1', key)
  const { answer } = fake
  fake.answer = (attempt) => {
    fake.sign(attempt)
    return forever()
  }
  const [renewal, recovery] = [newCsr(), newCsr()]
  untilDeath(plane.renew('n1', { csr: renewal, counter }))
  await eventually('the renewal to be signed', () => fake.signed.length === 2)
  let next = await setup.restart()
  fake.answer = answer
  const renewed = await next.renew('n1', { csr: renewal, counter })
  assert.equal(renewed.kind, 'issued', JSON.stringify(renewed))
  await next.firstUse('n1')
  fake.answer = (attempt) => {
    fake.sign(attempt)
    return forever()
  }
  const newest = next.counterOf(renewed)
  untilDeath(next.recoverByKey(key, 'n1', newest, recovery))
  await eventually('the recovery to be signed', () => fake.signed.length === 4)
  next = await setup.restart()
  fake.answer = answer
  const recovered = await next.recoverByKey(key, 'n1', newest, recovery)
  assert.equal(recovered.kind, 'issued', JSON.stringify(recovered))
  assert.deepEqual(await next.toBeRevoked(), [fake.signed[1]?.serial, fake.signed[3]?.serial].toSorted())
})

for (const commits of ['fails', 'fails-after'] as const)
  test(`a fault of the store ${commits === 'fails' ? 'before' : 'behind'} the second commit consumes nothing, and revokes nothing that was kept`, async (t) => {
    const { plane, fake } = await setUpOutside(t)
    const [secret, csr] = [await plane.invite('n1'), newCsr()]
    plane.crash.next = { at: writes('certificate'), commits }
    await assert.rejects(plane.enroll(secret, csr, null), /the store has a fault/)
    const outcome = await plane.enroll(secret, csr, null)
    assert.equal(outcome.kind, 'issued', JSON.stringify(outcome))
    const [first, second] = fake.signed
    const kept = commits === 'fails-after' ? first : second
    assert.equal(outcome.certificate.serial, kept?.serial)
    assert.deepEqual(await plane.certified(), [kept?.serial])
    assert.deepEqual(await plane.toBeRevoked(), commits === 'fails' ? [first?.serial] : [])
    const [token] = await plane.rows('token')
    assert.equal(token?.state.kind, 'used')
  })

/** What another replica does when the lease of the holder is over. */
const takeOver = async ({ store, orders }: OutsidePlane): Promise<void> => {
  const [order] = await orders()
  const row = (await store.get('order', order?.id ?? '')) ?? assert.fail()
  const step = settle(row.value, { others: new Set(), found: null, nowMs: row.value.issuedAtMs }) ?? assert.fail()
  const [placed] = (await store.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })).map(
    ({ entry }) => entry,
  )
  const outcome = await store.commit({
    reads: [{ row: 'order', key: row.value.id, version: row.version }],
    writes: [{ put: 'order', value: step.order }],
    entries: [{ ...(placed ?? assert.fail()), type: 'order.lost' }],
  })
  assert.notEqual(outcome, 'lost-race')
}

for (const takesSerial of [true, false])
  test(`a holder whose order was taken over revokes what it got, under an issuer that ${takesSerial ? 'takes our serials' : 'chooses serials'}`, async (t) => {
    const { plane, fake } = await setUpOutside(t, { takesSerial })
    fake.answer = async (attempt) => {
      fake.answer = async (next) => fake.sign(next)
      const answer = fake.sign(attempt)
      await takeOver(plane)
      return answer
    }
    const outcome = await plane.enroll(await plane.invite('n1'), newCsr(), null)
    assert.equal(outcome.kind, 'issued', JSON.stringify(outcome))
    assert.equal(fake.signed.length, 2)
    assert.deepEqual(await plane.certified(), [fake.signed[1]?.serial])
    assert.deepEqual(await plane.toBeRevoked(), [fake.signed[0]?.serial])
  })

for (const takesSerial of [true, false])
  test(`a lie that comes back after its order was taken over is journaled, and revoked, under an issuer that ${takesSerial ? 'takes our serials' : 'chooses serials'}`, async (t) => {
    const { plane, fake } = await setUpOutside(t, { takesSerial })
    fake.answer = async (attempt) => {
      const answer = fake.sign(attempt, { order: { publicKey: generateKey('p256').spki } })
      await takeOver(plane)
      return answer
    }
    assert.equal(codeOf(await plane.enroll(await plane.invite('n1'), newCsr(), null)), 'ISSUER_UNAVAILABLE')
    assert.deepEqual(await plane.toBeRevoked(), [fake.signed[0]?.serial])
    assert.deepEqual((await plane.journal('issuer.violation')).at(-1)?.body['fields'], ['publicKey'])
  })

// One store of the other kind has one plane.
if (onPostgres())
  test('an order that a fault of the store has left to a replica that lives is settled by that one', async (t) => {
    const setup = await setUpOutside(t)
    const { plane, fake } = setup
    const other = await setup.beside()
    const [secret, csr] = [await plane.invite('n1'), newCsr()]
    other.crash.next = { at: ({ writes }) => writes.some(({ put }) => put === 'order'), commits: 'fails-after' }
    await assert.rejects(other.enroll(secret, csr, null), /the store has a fault/)
    // Whoever leads waits for it, and so does the node.
    await plane.sweep()
    assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'BUSY')
    await other.issuance.ownUpkeep.run(other.store)
    assert.equal(codeOf(await plane.enroll(secret, csr, null)), 'issued')
    assert.equal(fake.signed.length, 1)
  })

if (onPostgres())
  test('of two replicas one holds an order; the other waits for it while it lives, and goes on when it is gone', async (t) => {
    const setup = await setUpOutside(t)
    const { plane, fake } = setup
    const other = await setup.beside()
    const { answer } = fake
    fake.answer = (attempt) => {
      fake.sign(attempt)
      return forever()
    }
    const [secret, csr] = [await plane.invite('n1'), newCsr()]
    untilDeath(plane.enroll(secret, csr, null))
    await isAsked(setup)
    fake.answer = answer
    assert.equal(codeOf(await other.enroll(secret, csr, null)), 'BUSY')
    assert.equal(fake.signed.length, 1, 'two planes never sign one order')
    await plane.store.close()
    const outcome = await other.enroll(secret, csr, null)
    assert.equal(outcome.kind, 'issued', JSON.stringify(outcome))
    assert.deepEqual(await other.toBeRevoked(), [fake.signed[0]?.serial])
  })
