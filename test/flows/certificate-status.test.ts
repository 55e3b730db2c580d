// Revocation lists and OCSP answers over a real store and a real authority, with a clock the test moves.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { certificateKey, slotOf, type Denial, type IssuedCertificate } from '#domain/core/certificate.ts'
import { entry, type Read, type Write } from '#domain/core/change.ts'
import { noHardware, type Membership } from '#domain/core/node.ts'
import { encode, octets, oid, sequence, unsigned } from '#pki/der-writer.ts'
import { keyHash } from '#pki/keys.ts'
import { oids } from '#pki/oids.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openOcsp } from '#plane/ca/answer-ocsp.ts'
import { certificateOf } from '#plane/authority/ca-signer.ts'
import { dropEndedListKeys } from '#plane/authority/list-signer.ts'
import { openResponders } from '#plane/ca/responders.ts'
import { openRevocationLists } from '#plane/ca/revocation-lists.ts'
import type { Standing } from '#plane/store/contract/replicas.ts'
import { systemTimers } from '#platform/timers.ts'
import { memberships, nodeRow, slots } from '../fakes/sample-rows.ts'
import { day, hour, leafOrder, operator, setUp } from './authority-setup.ts'

const minute = 60_000

const open = async (t: TestContext) => {
  const setup = await setUp(t)
  const { store, clock } = setup
  const authority = await setup.open()
  const feed = openFeed()
  const custody = await setup.custody()
  let standing: Standing = { kind: 'serving' }
  let livedMs: number | null = null
  Object.assign(store.replicas, { standing: () => standing })
  const core = { store, feed, clock, timers: systemTimers }
  const answer = openOcsp(core, openResponders(core, custody))
  const openLists = () =>
    openRevocationLists(core, {
      custody,
      steadyMs: () => clock.nowMs(),
      livedMs: async () => livedMs ?? clock.nowMs(),
      deltaUrlOf: () => null,
      onBuilt: () => {},
    })
  const lists = openLists()
  const commit = async (...writes: Write[]): Promise<void> => {
    const reads = writes.flatMap((write): Read[] =>
      write.put === 'certificate'
        ? [{ row: write.put, key: certificateKey(write.value.issuer, write.value.serial), version: 0 }]
        : write.put === 'node'
          ? [{ row: write.put, key: write.value.id, version: 0 }]
          : [],
    )
    const noted = entry(operator, clock.nowMs(), 'ca.requested', {}, {})
    const outcome = await store.commit({ reads, writes, entries: [noted] })
    if (outcome === 'lost-race') throw new Error('lost a race nobody else runs in')
    feed.publish(outcome)
  }
  const issue = async (node: string, lifetimeMs = day): Promise<IssuedCertificate> => {
    const issued = await authority.sign(leafOrder(clock.nowMs(), lifetimeMs))
    const row = { ...issued, subject: { kind: 'node', node, epoch: 1 }, renews: null } as const
    const { value } = nodeRow('active', { id: node, epoch: 1, hardware: noHardware })
    const membership = { ...memberships.active, slots: slots({ current: slotOf(row) }) }
    await commit({ put: 'certificate', value: row }, { put: 'node', value: { ...value, membership } })
    return issued
  }
  /** As done by hand in the database: no denials are written. */
  const changeNode = async (node: string, membership: Membership, epoch = 1): Promise<void> => {
    const row = await store.get('node', node)
    assert.ok(row !== null)
    const reads = [{ row: 'node', key: node, version: row.version } as const]
    const noted = entry(operator, clock.nowMs(), 'ca.requested', {}, {})
    const writes = [{ put: 'node', value: { ...row.value, membership, epoch } } as const]
    const outcome = await store.commit({ reads, writes, entries: [noted] })
    assert.ok(outcome !== 'lost-race')
    feed.publish(outcome)
  }
  const deny = (node: string, change: Partial<Denial> = {}): Promise<void> => {
    const value = { kind: 'epoch', node, epoch: 1, atMs: clock.nowMs(), untilMs: clock.nowMs() + day } as const
    return commit({ put: 'denial', value: { ...value, why: 'stolen', reason: 'unspecified', ...change } as Denial })
  }
  const idOf = async ({ issuer, serial }: { readonly issuer: string; readonly serial: string }) => {
    const row = (await store.get('issuer', issuer))?.value
    assert.ok(row !== undefined)
    const { subjectName, spki } = certificateOf(row)
    return sequence(
      sequence(oid(oids.sha1)),
      octets(Buffer.from(hash('sha1', subjectName, 'hex'), 'hex')),
      octets(Buffer.from(keyHash(spki, 'sha1'), 'hex')),
      unsigned(Buffer.from(serial.padStart(40, '0'), 'hex')),
    )
  }
  const ask = async (...asked: { readonly issuer: string; readonly serial: string }[]) => {
    const ids = await Promise.all(asked.map(idOf))
    return answer(encode(sequence(sequence(sequence(...ids.map((id) => sequence(id)))))))
  }
  return {
    ...setup,
    authority,
    custody,
    lists,
    openLists,
    changeNode,
    live: (ms: number) => void (livedMs = ms),
    ask,
    answer,
    issue,
    deny,
    stand: (now: Standing) => void (standing = now),
  }
}

test('an answer is repeated for some seconds, and never past a denial', async (t) => {
  const { clock, ask, issue, deny } = await open(t)
  const leaf = await issue('gpu-001')
  const first = await ask(leaf)
  assert.deepEqual(first.outcomes, ['good'])
  assert.equal(await ask(leaf), first, 'signed once')
  clock.advance(6000)
  assert.notEqual(await ask(leaf), first)
  await deny('gpu-001')
  assert.deepEqual((await ask(leaf)).outcomes, ['revoked'])
})

test('a replica that is out of touch calls nothing good, and says to come back', async (t) => {
  const { ask, issue, stand, store } = await open(t)
  const leaf = await issue('gpu-001')
  await ask(leaf)
  for (const kind of ['behind', 'expired'] as const) {
    stand({ kind, why: 'nothing was received' })
    assert.deepEqual((await ask(leaf)).outcomes, ['tryLater'])
  }
  stand({ kind: 'serving' })
  assert.deepEqual((await ask(leaf)).outcomes, ['good'])
  // It was in touch when it was asked, and is not when it has the answer.
  const another = await issue('gpu-002')
  const { get } = store
  Object.assign(store, {
    async get(...at: Parameters<typeof get>) {
      if (at[0] === 'denial') stand({ kind: 'behind', why: 'nothing was received' })
      return get.apply(store, at)
    },
  })
  assert.deepEqual((await ask(another)).outcomes, ['tryLater'])
})

test('several certificates of one issuer are answered together; for two issuers, or an unknown one, none may sign for all', async (t) => {
  const { authority, clock, ask, answer, issue, deny, store } = await open(t)
  const [one, other] = [await issue('gpu-001'), await issue('gpu-002')]
  await deny('gpu-002')
  const never = { issuer: one.issuer, serial: 'abcdef' }
  assert.deepEqual((await ask(one, other, never)).outcomes, ['good', 'revoked', 'unknown'])
  await authority.rotate(operator)
  // The commits of this authority are not received here: the issuers are looked at again after a second.
  clock.advance(1000)
  const later = await issue('gpu-003')
  assert.notEqual(later.issuer, one.issuer)
  assert.deepEqual((await ask(later)).outcomes, ['good'])
  assert.deepEqual((await ask(one)).outcomes, ['good'], 'its issuer signs certificates no more, its responder answers')
  assert.deepEqual((await ask(one, later)).outcomes, ['unauthorized'])
  const root = (await store.issuers()).find(({ value }) => value.role === 'root')?.value.id ?? ''
  assert.deepEqual((await ask({ issuer: root, serial: '1' })).outcomes, ['unauthorized'])
  assert.deepEqual((await answer(new Uint8Array(3))).outcomes, ['malformedRequest'])
})

test('of a withdrawn issuer every certificate is revoked, also those that are not in the store', async (t) => {
  const { ask, issue, deny } = await open(t)
  const { issuer, serial } = await issue('gpu-001')
  await deny('', { kind: 'issuer', issuer, reason: 'ca-compromise' })
  assert.deepEqual((await ask({ issuer, serial }, { issuer, serial: 'abcdef' })).outcomes, ['revoked', 'revoked'])
})

test('a list has what was denied before and after the request, under a higher number each time, and loses what has expired', async (t) => {
  const { clock, lists, issue, deny } = await open(t)
  const [one, other] = [await issue('gpu-001', 3 * hour), await issue('gpu-002', 30 * day)]
  await deny('gpu-001')
  clock.advance(minute)
  const full = async () => {
    const list = await lists.list(one.issuer, 'full')
    assert.ok(list !== null)
    return list
  }
  const first = await full()
  assert.equal(first.entries, 1)
  assert.equal(await full(), first, 'signed once')
  // From a replica whose clock is behind.
  await deny('gpu-002', { atMs: clock.nowMs() - 10 * minute })
  const second = await full()
  assert.equal(second.entries, 2)
  assert.ok(second.number > first.number)
  const delta = await lists.list(other.issuer, 'delta')
  assert.ok(delta !== null && delta.baseNumber !== null)
  assert.ok(delta.number >= second.number && delta.baseNumber <= first.number)
  clock.advance(4 * hour)
  await lists.settle()
  const last = await full()
  assert.equal(last.entries, 1)
  assert.ok(last.number > second.number)
})

test('there is no list of a root, of an unknown issuer, and of an issuer whose key is gone', async (t) => {
  const { authority, lists, issue, store } = await open(t)
  const { issuer } = await issue('gpu-001')
  assert.ok((await lists.list(issuer, 'full')) !== null)
  await authority.withdraw({ issuer, reason: 'stolen', by: operator, publish: () => {} })
  assert.equal(await lists.list(issuer, 'full'), null)
  assert.equal(await lists.list('00aa', 'full'), null)
  const root = (await store.issuers()).find(({ value }) => value.role === 'root')?.value.id ?? ''
  assert.equal(await lists.list(root, 'full'), null)
})

test('a retired issuer has lists until the last certificate it has signed has expired, and its key goes then', async (t) => {
  const { authority, clock, custody, lists, issue, deny, store } = await open(t)
  const { issuer } = await issue('gpu-001', 120 * day)
  const before = await lists.list(issuer, 'full')
  await authority.rotate(operator)
  assert.notEqual((await issue('gpu-002')).issuer, issuer)
  clock.advance(minute)
  await deny('gpu-001', { untilMs: clock.nowMs() + 120 * day })
  await deny('gpu-002')
  const after = await lists.list(issuer, 'full')
  assert.ok(before !== null && after !== null && after.number > before.number)
  assert.deepEqual([before.entries, after.entries], [0, 1])
  assert.equal((await lists.list(issuer, 'delta'))?.entries, 1)

  const upkeep = async (): Promise<void> => {
    await custody.refresh()
    await dropEndedListKeys({ custody, store, nowMs: clock.nowMs() })
    await lists.settle()
  }
  await upkeep()
  // The certificate of the plane itself has ended by then, which was the first it has signed.
  clock.advance(119 * day)
  await upkeep()
  assert.ok((await lists.list(issuer, 'full')) !== null)
  clock.advance(day + 31 * minute)
  await upkeep()
  assert.equal(custody.has({ role: 'retired', id: issuer }), false)
  assert.equal(await lists.list(issuer, 'full'), null)
})

test('L2: OCSP answers and lists follow the row of the node where its denial is gone', async (t) => {
  const { ask, issue, changeNode, openLists } = await open(t)
  const leaves = []
  for (const node of ['gpu-001', 'gpu-002', 'gpu-003', 'gpu-004']) leaves.push(await issue(node))
  for (const leaf of leaves) assert.deepEqual((await ask(leaf)).outcomes, ['good'])
  await changeNode('gpu-001', memberships.revoked)
  await changeNode('gpu-002', memberships.quarantined)
  await changeNode('gpu-003', memberships.active, 2)
  for (const leaf of leaves.slice(0, 2)) assert.deepEqual((await ask(leaf)).outcomes, ['revoked'])
  const asked = await ask(...leaves)
  assert.deepEqual(asked.outcomes, ['revoked', 'revoked', 'revoked', 'good'])
  const [leaf] = leaves
  assert.equal((await openLists().list(leaf?.issuer ?? '', 'full'))?.entries, 3)
})

test('L2: a list has everything again when a clock that was ahead is set right, without a restart', async (t) => {
  const { clock, lists, issue, deny, live } = await open(t)
  const { issuer } = await issue('gpu-001')
  await deny('gpu-001')
  const nowMs = clock.nowMs()
  live(nowMs)
  assert.equal((await lists.list(issuer, 'full'))?.entries, 1)
  clock.set(nowMs + 20 * day)
  await lists.settle()
  assert.equal((await lists.list(issuer, 'full'))?.entries, 0)
  clock.set(nowMs + minute)
  assert.equal((await lists.list(issuer, 'full'))?.entries, 1)
})
