// What every store keeps of the rows about outside issuers: one open order for each certificate, and lists of what is to be done.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { certificateKey, type CertificateRow } from '#domain/core/certificate.ts'
import type { Row, Write } from '#domain/core/change.ts'
import { complete, refusedThere, replace, settle, type Order, type OrderStep } from '#domain/issuers/order.ts'
import type { CertificatePlace, Store } from '#plane/store/contract/store.ts'
import { keyOf, newRowsOf } from '../fakes/fleet-rows.ts'
import { revocationThere, signingOrder } from '../fakes/issuer-rows.ts'
import type { StoreUnderTest } from './contract.ts'
import { change, read, someCertificate } from './harness.ts'

const atMs = signingOrder().issuedAtMs
const dayMs = 86_400_000

const taken = (step: OrderStep | null): Order => (step ?? assert.fail('no step')).order
const lost = (order: Order): Order => taken(settle(order, { others: new Set(), found: null, nowMs: atMs }))
const issued = (order: Order, serial: string): Order => taken(complete(order, { holder: 1, serial, nowMs: atMs }))

export const issuerRowsContract = (name: string, openEmpty: () => Promise<StoreUnderTest>): void => {
  describe(`${name} keeps the rows of outside issuers`, () => {
    let under: StoreUnderTest
    let store: Store
    beforeEach(async () => {
      under = await openEmpty()
      store = under.store
    })
    afterEach(async () => {
      await store.close()
      await under.remove()
    })
    const commit = (writes: readonly Write[]) => store.commit(change(newRowsOf(writes), writes))
    const keep = async (...writes: readonly Write[]): Promise<void> => {
      assert.notEqual(await commit(writes), 'lost-race')
    }
    const orderRow = (changes: Partial<Order>): Write => ({ put: 'order', value: signingOrder(changes) })
    const idsOf = async (where: Readonly<Record<string, string | number>>): Promise<string[]> =>
      (await store.list('order', { where, after: null, limit: 10 })).map(({ value }) => value.id)

    test('of two orders for one certificate one is kept, and another takes its place in the commit that ends it', async () => {
      await keep(orderRow({ id: 'o1' }))
      assert.equal(await commit([orderRow({ id: 'o2' })]), 'lost-race')
      await keep(orderRow({ id: 'o3', subject: { kind: 'node', node: 'gpu-002', epoch: 1 } }))
      const former = lost(signingOrder({ id: 'o1' }))
      await store.commit(change([read('order', 'o1', 1)], [{ put: 'order', value: former }]))
      assert.equal(await commit([orderRow({ id: 'o4' })]), 'lost-race', 'a lost one waits for its node')
      const replaced = replace(former, 'o5', atMs) ?? assert.fail()
      const next = change(
        [read('order', 'o1', 2), read('order', 'o5', 0)],
        [{ put: 'order', value: replaced.order }, orderRow({ id: 'o5' })],
      )
      assert.notEqual(await store.commit(next), 'lost-race')
      const racing = await Promise.all(['o6', 'o7'].map((id) => commit([orderRow({ id, subject: ofProgram })])))
      assert.equal(racing.filter((outcome) => outcome === 'lost-race').length, 1)
    })
    const ofProgram = { kind: 'program', node: 'gpu-001', epoch: 1, output: 'db' } as const

    test('orders are found by their state, and those with orphans among those of their issuer', async () => {
      const node = (id: string) => ({ id, subject: { kind: 'node', node: id, epoch: 1 } as const })
      await keep(
        orderRow(node('o1')),
        { put: 'order', value: lost(signingOrder(node('o2'))) },
        { put: 'order', value: issued(signingOrder(node('o3')), 'a9') },
        { put: 'order', value: lost(signingOrder({ ...node('o4'), issuer: 'other' })) },
      )
      store = await under.reopen()
      assert.deepEqual(await idsOf({ state: 'intended' }), ['o1'])
      assert.deepEqual(await idsOf({ state: 'lost' }), ['o2', 'o4'])
      assert.deepEqual(await idsOf({ orphaned: 1, issuer: 'c0ffee' }), ['o2'])
    })

    test('the orders of an issuer come by what may last longest, without those that were refused, and those of a node by its name', async () => {
      const of = (id: string, changes: Partial<Order> = {}) =>
        signingOrder({ id, subject: { kind: 'node', node: id, epoch: 1 }, ...changes })
      const refused = refusedThere(of('o3'), { holder: 1, why: 'no', nowMs: atMs }) ?? assert.fail()
      await keep(
        { put: 'order', value: of('o1') },
        { put: 'order', value: of('o2', { lifetimeMs: 9 * dayMs }) },
        { put: 'order', value: refused.order },
        { put: 'order', value: of('o4', { issuer: 'other' }) },
      )
      const lasting = await store.list('order', {
        where: { issuer: 'c0ffee' },
        ...{ order: 'lasting', after: null, limit: 10 },
      })
      assert.deepEqual(
        lasting.map(({ value }) => value.id),
        ['o2', 'o1'],
      )
      assert.deepEqual(await idsOf({ node: 'o3' }), ['o3'])
    })

    test('certificates that have not ended come by page, the last to end first', async () => {
      const ends = [5, 3, 3, 3, 1, 0].map((day) => atMs + day * dayMs)
      const all = ends.map((notAfterMs, at) => someCertificate(`a${at}`, { notAfterMs }))
      await keep(...all.map((value): Write => ({ put: 'certificate', value })))
      const found: string[] = []
      for (let before: CertificatePlace | null = null; ;) {
        const page: readonly Row<CertificateRow>[] = await store.unexpiredCertificates({
          ...{ afterMs: atMs, before, limit: 2 },
        })
        const last = page.at(-1)
        if (last === undefined) break
        found.push(...page.map(({ value }) => value.serial))
        const { notAfterMs, issuer, serial } = last.value
        before = { notAfterMs, key: certificateKey(issuer, serial) }
      }
      assert.deepEqual(found, ['a0', 'a3', 'a2', 'a1', 'a4'])
    })

    test('revocations of an issuer that wait are found, the oldest first', async () => {
      const waiting = (sinceMs: number) => ({ atMs: sinceMs, receipt: 'r1' })
      const done = { state: { kind: 'done', how: 'revoked', atMs } as const }
      const all = [
        revocationThere('1', waiting(atMs + 9)),
        revocationThere('2', waiting(atMs + 5)),
        revocationThere('3', done),
        revocationThere('4', { ...waiting(atMs), issuer: 'other' }),
      ]
      await keep(...all.map((value): Write => ({ put: 'issuer-revocation', value })))
      const list = (order: { order?: string }, where: Readonly<Record<string, string>>) =>
        store.list('issuer-revocation', { where, ...order, after: null, limit: 10 })
      const due = await list({ order: 'due' }, { issuer: 'c0ffee' })
      assert.deepEqual(
        due.map(({ value }) => value.serial),
        ['2', '1'],
      )
      assert.equal((await list({}, { receipt: 'r1' })).length, 3)
    })

    test('an order and a revocation are forgotten a month after nothing can come of them, and never before they are over', async () => {
      const past = { issuedAtMs: atMs - 40 * dayMs, lifetimeMs: dayMs }
      const node = (id: string) => ({ id, subject: { kind: 'node', node: id, epoch: 1 } as const })
      const open = signingOrder({ ...past, ...node('o1') })
      const attempts = open.attempts.map((one) => ({ ...one, atMs: past.issuedAtMs }))
      const writes: readonly Write[] = [
        { put: 'order', value: { ...open, attempts } },
        { put: 'order', value: issued({ ...open, attempts, ...node('o2') }, 'a9') },
        { put: 'order', value: issued(signingOrder(node('o3')), 'a9') },
        { put: 'issuer-revocation', value: revocationThere('1', { untilMs: atMs - 40 * dayMs }) },
        {
          put: 'issuer-revocation',
          value: revocationThere('2', { untilMs: atMs - 40 * dayMs, state: { kind: 'given-up', atMs } }),
        },
      ]
      await keep(...writes)
      assert.equal(await store.forget(atMs), 2)
      const left = await Promise.all(
        writes.map(async ({ put, ...write }) => store.get(put, keyOf({ put, ...write } as Write))),
      )
      assert.deepEqual(
        left.map((row) => row !== null),
        [true, false, true, true, false],
      )
    })
  })
}
