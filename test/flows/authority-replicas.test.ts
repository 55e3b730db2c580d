// Two planes over one PostgreSQL, as far as their authorities go: what they share is replaced once, by the one that leads,
// and known to both; issuers in memory are each plane's own.

import { noPrograms, noWorkers } from '../fakes/no-programs.ts'
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { intermediateLifetimeMs, rootLifetimeMs } from '#pki/authority-certificates.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { AuthorityOptions } from '#plane/authority/authority-state.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { createAuthority } from '#plane/authority/create-authority.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { openRecoveryAuthority, type RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { openServedNames } from '#plane/authority/served-names.ts'
import { openRevocationLists } from '#plane/ca/revocation-lists.ts'
import { sealingKeyOf } from '#plane/keys/seal.ts'
import { openSharedCustody } from '#plane/keys/shared-custody.ts'
import type { SealedKeys, Store } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { withPeer } from '../peers/peer.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { makeSigner, openPostgresStoreOn } from '../store/harness.ts'
import { day, leafOrder, longestProfileMs, operator, startMs } from './authority-setup.ts'

const sealing = { key: sealingKeyOf(Buffer.alloc(32, 7), systemRandom), file: '', protection: 'protected' } as const

type Planes = {
  readonly clock: ReturnType<typeof manualClock>
  /** The first leads. */
  open(options?: Partial<AuthorityOptions>): Promise<readonly [OnePlane, OnePlane]>
}

type OnePlane = {
  readonly store: Store
  readonly custody: KeyCustody
  readonly authority: Authority
  readonly recovery: RecoveryAuthority
}

const setUp = async (t: TestContext, issuerKey: 'file' | 'memory'): Promise<Planes> => {
  const { target } = await postgresDatabase(t)
  const signer = makeSigner()
  const stores = [await openPostgresStoreOn(target, signer), await openPostgresStoreOn(target, signer)] as const
  for (const store of stores) cleanup(t, () => store.close())
  const clock = manualClock(startMs)
  const [store] = stores
  const custody = await openSharedCustody(keysOf(store), sealing)
  const wanted = { domain: 'test.example', rootLifetimeMs, rootPathLen: 2, rootOut: null, issuerKey } as const
  const created = await createAuthority(
    { clock, random: systemRandom },
    custody,
    { ...wanted, intermediateLifetimeMs },
    operator,
  )
  if (isRefusal(created)) throw new Error(created.detail ?? created.code)
  await store.commit({
    reads: [
      { row: 'domain', key: 'domain', version: 0 },
      ...shippedProfiles.map(({ name }) => ({ row: 'profile', key: name, version: 0 }) as const),
      ...created.rows.map(({ id }) => ({ row: 'issuer', key: id, version: 0 }) as const),
    ],
    writes: [
      { put: 'domain', value: defaultDomainSettings('test.example') },
      ...shippedProfiles.map((value) => ({ put: 'profile', value }) as const),
      ...created.rows.map((value) => ({ put: 'issuer', value }) as const),
    ],
    entries: created.entries,
  })
  await eventually('one of them to lead', () => stores.some(({ replicas }) => replicas.leadership() !== null))
  const leaderFirst = [...stores].sort((one) => (one.replicas.leadership() === null ? 1 : -1))

  const openOne = async (store: Store, options: Partial<AuthorityOptions>): Promise<OnePlane> => {
    const feed = openFeed()
    store.onForeignCommit((committed) => feed.publish(committed))
    const custody = await openSharedCustody(keysOf(store), sealing)
    const certificates = { domain: 'test.example', serverLifetimeMs: 90 * day }
    const core = { store, feed, clock, random: systemRandom, log: silentLog }
    const names = await openServedNames(core, {
      names: { dns: ['localhost'], ip: [] },
      host: 'localhost',
      addresses: [],
    })
    const recovery = await openRecoveryAuthority(core, { custody, names, options: certificates })
    const authority = await openAuthority(
      { ...core, timers: systemTimers },
      {
        custody,
        names,
        recovery,
        programs: noPrograms,
        workers: noWorkers,
        options: { ...certificates, issuerKey, intermediateLifetimeMs, ...options },
      },
    )
    return { store, custody, authority, recovery }
  }
  return {
    clock,
    async open(options = {}) {
      const [leader, follower] = leaderFirst as [Store, Store]
      return [await openOne(leader, options), await openOne(follower, options)]
    },
  }
}

const keysOf = ({ sealedKeys }: Store): SealedKeys => {
  if (sealedKeys === null) throw new Error('this store shares no keys')
  return sealedKeys
}

const issuerNow = async ({ authority }: OnePlane, { clock }: Planes): Promise<string> =>
  (await authority.sign(leafOrder(clock.nowMs(), day))).issuer

const retired = async ({ store }: OnePlane): Promise<string[]> =>
  (await store.issuers()).filter(({ value }) => value.retiredAtMs !== null).map(({ value }) => value.id)

test('keys in the store: both planes sign with one issuer, and each presents a certificate of its own', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await setUp(t, 'file')
  const [leader, follower] = await planes.open()
  assert.equal(await issuerNow(leader, planes), await issuerNow(follower, planes))
  assert.notEqual(leader.authority.serverIdentity().chainPem, follower.authority.serverIdentity().chainPem)
  assert.deepEqual(leader.recovery.roots(), follower.recovery.roots())
  assert.deepEqual(leader.recovery.statementKeys(), follower.recovery.statementKeys())
  const about = { node: 'gpu-001', counter: 1, spki: 'x' }
  assert.equal(leader.recovery.bearerFor(about), follower.recovery.bearerFor(about))
  const names = [...(await keysOf(leader.store).all()).keys()]
  assert.deepEqual(names.map((name) => name.split('/')[0]).sort(), [
    'bearer',
    'issuing',
    'recovery',
    'responder',
    'root',
    'statement',
  ])
})

test('what is due is replaced by the leader alone, and the other signs with it as soon as it reads the commit', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await setUp(t, 'file')
  const [leader, follower] = await planes.open()
  const before = await issuerNow(follower, planes)
  planes.clock.advance(intermediateLifetimeMs / 2 + day)
  await follower.authority.maintain(longestProfileMs)
  assert.equal(await issuerNow(follower, planes), before)
  assert.deepEqual(await retired(follower), [])

  await leader.authority.maintain(longestProfileMs)
  const after = await issuerNow(leader, planes)
  assert.notEqual(after, before)
  await eventually('the other to sign with it', async () => (await issuerNow(follower, planes)) === after)
  assert.deepEqual(await retired(follower), [before])
  assert.ok(!(await keysOf(leader.store).all()).has(`issuing/${before}`))
})

test('an order that no issuer fits any more waits for the leader and is not cut short', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await setUp(t, 'file')
  const [leader, follower] = await planes.open()
  planes.clock.advance(intermediateLifetimeMs - 30 * day)
  const order = leafOrder(planes.clock.nowMs(), longestProfileMs)
  await assert.rejects(follower.authority.sign(order), /leads has not replaced it yet/)
  await leader.authority.maintain(longestProfileMs)
  planes.clock.advance(2000)
  const leaf = await follower.authority.sign(leafOrder(planes.clock.nowMs(), longestProfileMs))
  const certificate = parseCertificate(Buffer.from(leaf.der, 'base64'))
  assert.ok(certificate.kind === 'certificate')
  assert.equal(certificate.notAfterMs, planes.clock.nowMs() + longestProfileMs)
})

test('the replica that is asked rotates, and all planes go over to the new issuer', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await setUp(t, 'file')
  const [leader, follower] = await planes.open()
  const before = await issuerNow(leader, planes)
  await follower.authority.rotate(operator)
  const after = await issuerNow(follower, planes)
  assert.notEqual(after, before)
  await eventually('the leader to sign with it', async () => (await issuerNow(leader, planes)) === after)
})

test('of an issuer that has retired both planes make the same list, and neither makes one once it is withdrawn', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await setUp(t, 'file')
  const both = await planes.open()
  const [leader, follower] = both
  const before = await issuerNow(leader, planes)
  const lists = both.map(({ store, custody }) =>
    openRevocationLists(
      { store, feed: openFeed(), clock: planes.clock, timers: systemTimers },
      {
        custody,
        steadyMs: () => planes.clock.nowMs(),
        livedMs: async () => planes.clock.nowMs(),
        deltaUrlOf: () => null,
        onBuilt: () => {},
      },
    ),
  )
  const numbers = async () => Promise.all(lists.map(async (one) => (await one.list(before, 'full'))?.number ?? null))
  await follower.authority.rotate(operator)
  const [one, other] = await numbers()
  assert.ok(one !== null && one === other)
  const kept = await keysOf(leader.store).all()
  assert.deepEqual([kept.has(`issuing/${before}`), kept.has(`retired/${before}`)], [false, true])
  await leader.authority.withdraw({ issuer: before, reason: 'stolen', by: operator, publish: () => {} })
  assert.deepEqual(await numbers(), [null, null])
  assert.ok(!(await keysOf(leader.store).all()).has(`retired/${before}`))
})

test('keys in memory: each plane has an issuer of its own, and what one starts with retires nothing of the other', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await setUp(t, 'memory')
  const [leader, follower] = await planes.open()
  const [one, other] = [await issuerNow(leader, planes), await issuerNow(follower, planes)]
  assert.notEqual(one, other)
  assert.deepEqual(await retired(leader), [])
  await eventually('each to know the chain of the other', () => {
    leader.authority.chainOf(other)
    follower.authority.chainOf(one)
    return true
  })
  // As after a restart of both: the earlier issuers stay in the store.
  const [again] = await planes.open()
  assert.notEqual(await issuerNow(again, planes), one)
  assert.deepEqual(await retired(again), [])
  assert.equal(again.authority.chainOf(one).length, 2)
})

test('keys in memory: a rotation retires the issuers of every plane, and each makes itself a new one', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const planes = await setUp(t, 'memory')
  const [leader, follower] = await planes.open()
  const before = [await issuerNow(leader, planes), await issuerNow(follower, planes)]
  await follower.authority.rotate(operator)
  assert.ok(!before.includes(await issuerNow(follower, planes)))
  await eventually('the other to have a new one', async () => !before.includes(await issuerNow(leader, planes)))
  assert.deepEqual((await retired(leader)).sort(), before.sort())
})
