// `node purge`, by the command people use and by two replicas at once: what goes, what stays, and where a new registration begins.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { type Change, entry, type RowKind, type Write } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import type { Core } from '#plane/core/core.ts'
import { openFeed } from '#plane/core/feed.ts'
import { compareRows } from '#plane/journal/compare-rows.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import { purgeNode } from '#plane/revocation/purge-node.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers, turn } from '#platform/timers.ts'
import type { PlanApplied, PlanView } from '#wire/plans/plan-api.ts'
import { signingOrder } from '../fakes/issuer-rows.ts'
import { manualClock, type ManualClock } from '../fakes/manual-clock.ts'
import { cleanup } from '../process/cleanup.ts'
import { databaseOf, storeEnvironment } from '../process/store-under-test.ts'
import { tempFolder } from '../process/temp-folder.ts'
import {
  makeSigner,
  newNode,
  openPostgresStoreOn,
  openStore,
  read,
  someCertificate,
  someToken,
} from '../store/harness.ts'
import { newRows } from '../store/transfer-setup.ts'
import { day, hour, operator, startMs } from './authority-setup.ts'
import { setUpCli } from './cli-setup.ts'

const certificate = someCertificate('a1', {
  subject: { kind: 'node', node: 'gpu-001', epoch: 1 },
  spki: 'key-1',
  issuedAtMs: startMs,
  notAfterMs: startMs + day,
})

/** Of a program whose output was ended since: its row has no leaf any more. */
const leaf = someCertificate('b2', {
  subject: { kind: 'program', node: 'gpu-001', epoch: 1, output: 'web' },
  spki: 'key-2',
  issuedAtMs: startMs,
  notAfterMs: startMs + 3 * day,
})

/** At an outside issuer, with a certificate that no node got. */
const lost = signingOrder({
  subject: { kind: 'node', node: 'gpu-001', epoch: 1 },
  ...{ issuedAtMs: startMs, lifetimeMs: 2 * day },
  attempts: [{ serial: 'c3', atMs: startMs, fate: { kind: 'orphan', serial: 'c3' } }],
  state: { kind: 'abandoned', why: 'its node was revoked', atMs: startMs },
})

/** As an enrollment, a WireGuard key and a first use leave it. */
const active = ({ value, version }: { readonly value: Node; readonly version: number }): Change => {
  const { issuer, serial, spki, sha256, issuedAtMs, notAfterMs } = certificate
  const current = { issuer, serial, spki, sha256, issuedAtMs, notAfterMs }
  const publicKey = Buffer.alloc(32, 9).toString('base64')
  const holder = { node: value.id, sinceMs: startMs }
  const node: Node = {
    ...value,
    ...{ epoch: 1, counter: 1, wireguard: { publicKey, address: 'fd00::7', endpoint: null } },
    membership: { kind: 'active', sinceMs: startMs, slots: { current, pending: null, retired: null } },
  }
  const writes: readonly Write[] = [
    { put: 'certificate', value: certificate },
    { put: 'certificate', value: leaf },
    { put: 'key-claim', value: { spki, holders: [{ ...holder, use: 'tls' }] } },
    { put: 'key-claim', value: { spki: leaf.spki, holders: [{ ...holder, use: 'program' }] } },
    { put: 'wireguard-key', value: { publicKey, ...holder, endedAtMs: null } },
    { put: 'overlay-address', value: { address: 'fd00::7', ...holder, releasedAtMs: null } },
    { put: 'order', value: lost },
    { put: 'token', value: someToken('t1', { state: { kind: 'used', spki, node: value.id, atMs: startMs } }) },
  ]
  const said = (type: 'host.enrolled' | 'node.confirmed') =>
    entry(operator, startMs, type, { node: value.id, epoch: 1 })
  return {
    reads: [read('node', value.id, version), ...newRows(...writes).reads],
    writes: [{ put: 'node', value: node }, ...writes],
    entries: [said('host.enrolled'), said('node.confirmed')],
  }
}

/** Every row of the store in which the name stands in clear, by kind. */
const namedIn = async (store: Store, name: string): Promise<readonly RowKind[]> => {
  const found: RowKind[] = []
  for (const kind of Object.keys(tableShapes) as RowKind[]) {
    const rows = await store.list(kind, { after: null, limit: 1000 })
    if (JSON.stringify(rows).includes(name)) found.push(kind)
  }
  return found
}

const differences = async (store: Store, clock: ManualClock) =>
  (await compareRows({ store, clock }, { rest: async () => {}, again: async () => {}, fence: async () => {} }))
    .differences

test('a revoked node is purged as planned, once its certificate has ended; its name goes on in the next epoch', async (t) => {
  const { store, clock, muster, musterWith, keyFile } = await setUpCli(t)
  const saying = async (code: number, ...words: string[]): Promise<string> => {
    const said = await muster(...words)
    assert.equal(said.code, code, `${words.join(' ')}: ${said.err}`)
    return said.out
  }
  const ok = (...words: string[]): Promise<string> => saying(exitCodes.ok, ...words)
  const purge = ['node', 'purge', 'gpu-001', '--reason', 'asked for', '-o', 'json']
  const plan = async (): Promise<PlanView> => JSON.parse(await saying(exitCodes.onlyPlanned, ...purge)) as PlanView
  const refused = async (): Promise<string> => {
    const { code, out, err } = await muster('node', 'purge', 'gpu-001', '--reason', 'asked for')
    assert.deepEqual([code, out, /plan apply/.test(err)], [exitCodes.refused, '', false], 'no plan that does nothing')
    return err
  }

  await ok('node', 'enroll', 'gpu-001', '--mac', '02:00:00:00:00:01')
  const registered = (await store.get('node', 'gpu-001')) ?? assert.fail('it is registered')
  assert.notEqual(await store.commit(active(registered)), 'lost-race')
  assert.match(await refused(), /gpu-001 cannot be purged: it is active/)

  await ok('node', 'revoke', 'gpu-001', '--reason', 'sold')
  assert.match(await refused(), /a certificate of it, or its denial, is good until/)
  clock.advance(2 * day)
  assert.match(await refused(), /a certificate of it, or its denial, is good until/, 'that of a program')
  const own = await store.list('certificate', { where: { node: 'gpu-001' }, after: null, limit: 10 })
  assert.deepEqual(
    own.map(({ value }) => value.serial),
    [certificate.serial],
    'readers of the certificates of a node do not read past those of its programs',
  )
  clock.advance(2 * day)
  assert.match(await refused(), /no wrong clock changes/)
  await store.addLived(clock.nowMs())
  store.observe('gpu-001', { agentVersion: '0.4.0' })

  await ok('node', 'enroll', 'gpu-002')
  const both = await muster('node', 'purge', 'gpu-001', 'gpu-002', '--reason', 'asked for', '-o', 'json')
  const [, other] = (JSON.parse(both.out) as PlanView).effects
  assert.match(other?.effect ?? '', /^nothing: gpu-002 cannot be purged: it is registered/)

  const shown = await plan()
  assert.match(
    shown.effects[0]?.effect ?? '',
    /removed for good: .* 2 certificates, 1 token, 1 receipt; .* 3 keys stay/,
  )
  assert.equal(
    (await musterWith({ env: { MUSTER_KEY_FILE: keyFile('operator') } }, 'plan', 'apply', shown.id)).code,
    exitCodes.notAllowed,
  )
  const tombstone = (await store.get('node', 'gpu-001')) ?? assert.fail('a plan alone does nothing')
  const applied = JSON.parse(await ok('node', 'purge', '--apply', shown.id, '-o', 'json')) as PlanApplied
  assert.deepEqual(
    applied.steps.map(({ done, code }) => [done, code]),
    [[true, null]],
  )

  assert.deepEqual(await namedIn(store, 'gpu-001'), ['plan'], 'a plan is forgotten within the hour')
  assert.deepEqual(await store.nodesByHardware({ macs: ['02:00:00:00:00:01'], bmcSerial: null }), [])
  const [claim] = await store.list('key-claim', { after: null, limit: 10 })
  assert.match(claim?.value.holders[0]?.node ?? '', /^purged:[0-9a-f]{64}$/)
  assert.notEqual(await store.get('key-ban', 'key-1'), null)
  assert.equal((await muster('node', 'show', 'gpu-001')).code, exitCodes.notFound)
  const [said] = await store.journal.read({ after: null, last: 1, limit: 1, node: 'gpu-001', type: 'node.purged' })
  assert.deepEqual([said?.entry.epoch, said?.entry.body['reason']], [1, 'asked for'])
  assert.equal((await store.journal.verify()).kind, 'intact')
  assert.deepEqual(await differences(store, clock), [])

  await ok('token', 'create', '--node', 'gpu-001')
  const again = (await store.get('node', 'gpu-001')) ?? assert.fail('a token registers it')
  assert.deepEqual([again.value.epoch, again.value.tenure, again.value.counter], [1, 2, 1])
  assert.equal(again.version, tombstone.version + 1)
  assert.deepEqual(await differences(store, clock), [])
})

const coreOf = (store: Store, clock: ManualClock): Core => ({
  ...{ store, feed: openFeed(), clock, random: systemRandom, timers: systemTimers, log: silentLog },
})

const twoStores = async (t: TestContext): Promise<readonly [Store, Store]> => {
  const folder = tempFolder(t)
  await storeEnvironment(t, folder)
  const database = await databaseOf(folder)
  const signer = makeSigner()
  const open = async (): Promise<Store> => {
    const store =
      database === null ? await openStore(folder, signer) : await openPostgresStoreOn(database.target, signer)
    cleanup(t, () => store.close())
    return store
  }
  const store = await open()
  return [store, database === null ? store : await open()]
}

/** `part` is done when `whole` has read a node for the first time. */
const inTheMiddle = async <A, B>(
  store: Store,
  whole: (store: Store) => Promise<A>,
  part: () => Promise<B>,
): Promise<readonly [A, B]> => {
  const begun: Promise<B>[] = []
  const get: Store['get'] = async (kind, key) => {
    const found = await store.get(kind, key)
    if (kind === 'node' && begun.length === 0) begun.push(part())
    await begun[0]
    return found
  }
  const outcome = await whole({ ...store, get })
  const [done = assert.fail('it reads the node')] = await Promise.all(begun)
  return [outcome, done]
}

test('of a purge and a registration at once either order gives the next epoch, by one plane or by two', async (t) => {
  const [one, other] = await twoStores(t)
  const clock = manualClock(startMs)
  const [profile] = shippedProfiles
  assert.ok(profile !== undefined)
  const settings = { ...defaultDomainSettings('test.example'), defaultProfile: profile.name }
  await one.commit(newRows({ put: 'domain', value: settings }, { put: 'profile', value: profile }))
  const membership = { kind: 'revoked', sinceMs: startMs - hour, reason: 'sold', by: 'operator:test' } as const
  const ids = Array.from({ length: 16 }, (_, at) => `gpu-${at}`)
  for (const id of ids) {
    const said = (type: 'host.enrolled' | 'host.revoked') => entry(operator, startMs, type, { node: id, epoch: 5 })
    const tombstone = newNode(id, { epoch: 5, tenure: 2, counter: 8, membership })
    await one.commit({ ...tombstone, entries: [said('host.enrolled'), said('host.revoked')] })
  }
  const orders = new Set<string>()
  for (const [at, id] of ids.entries()) {
    const purge = (store: Store) => purgeNode(coreOf(store, clock), id, 'race', operator, () => null)
    const register = (store: Store) =>
      registerNode(coreOf(store, clock), { id, profile: null, macs: [], bmcSerial: null }, operator)
    // At once, or one in the middle of the other: after it has read the tombstone.
    const done =
      at % 3 === 0
        ? await Promise.all([purge(one), register(other)])
        : at % 3 === 1
          ? await inTheMiddle(
              other,
              (store) => register(store),
              () => purge(one),
            ).then(([whole, part]) => [part, whole] as const)
          : await inTheMiddle(
              one,
              (store) => purge(store),
              () => register(other),
            )
    const [purged, registered] = done
    assert.ok(!isRefusal(registered), 'a tombstone and a purged name can both be registered')
    orders.add(isRefusal(purged) ? `registered first: ${purged.code}` : 'purged first')
    const node = (await one.get('node', id))?.value
    assert.deepEqual([node?.membership.kind, node?.epoch, node?.tenure, node?.counter], ['registered', 5, 3, 8])
  }
  assert.deepEqual([...orders].toSorted(), ['purged first', 'registered first: NODE_STATE_CONFLICT'])
  assert.deepEqual(await differences(one, clock), [])
  assert.equal((await one.journal.verify()).kind, 'intact')
})

test('of a node with many keys and certificates behind it most goes in parts, before the commit that ends it', async (t) => {
  const [whole] = await twoStores(t)
  const clock = manualClock(startMs)
  let fullPages = 0
  let mostInTurn = 0
  const list: Store['list'] = async (kind, query) => {
    const page = await whole.list(kind, query)
    if (page.length === query.limit && fullPages++ === 0) setImmediate(() => (fullPages = 0))
    mostInTurn = Math.max(mostInTurn, fullPages)
    return page
  }
  const store: Store = { ...whole, list }
  const membership = { kind: 'revoked', sinceMs: startMs - hour, reason: 'sold', by: 'operator:test' } as const
  await store.commit(newNode('gpu-001', { epoch: 1, membership }))
  const subject = { kind: 'program', node: 'gpu-001', epoch: 1, output: 'web' } as const
  const rows = Array.from({ length: 1200 }, (_, at): Write[] => [
    { put: 'certificate', value: someCertificate(`c${at}`, { subject, notAfterMs: -1 }) },
    { put: 'key-claim', value: { spki: `k${at}`, holders: [{ node: 'gpu-001', use: 'program', sinceMs: 0 }] } },
  ])
  await store.commit(newRows(...rows.flat()))
  // Cut off after its first part, and then done again: a year of certificates must not be one turn of the event loop.
  let commits = 0
  const commit: Store['commit'] = (...given) =>
    commits++ === 1 ? Promise.reject(new Error('cut off')) : store.commit(...given)
  const purge = (core: Core) => purgeNode(core, 'gpu-001', 'asked for', operator, () => null)
  await assert.rejects(purge(coreOf({ ...store, commit }, clock)), /cut off/)
  await turn(systemTimers)
  assert.ok(!isRefusal(await purge(coreOf(store, clock))))
  assert.equal(mostInTurn, 1, 'full pages in one turn of the event loop')
  assert.deepEqual(await namedIn(store, 'gpu-001'), [])
  const query = { after: null, last: null, limit: 10, node: 'gpu-001', type: ['node.purging', 'node.purged'] } as const
  assert.deepEqual(
    (await store.journal.read(query)).map(({ entry: { type, body } }) => [
      type,
      body['certificates'],
      body['keys_kept'],
    ]),
    [
      ['node.purging', 500, 0],
      ['node.purging', 500, 0],
      ['node.purging', 200, 300],
      ['node.purging', 0, 500],
      ['node.purged', 1200, 1200],
    ],
  )
})

test('beside replicas of the release before nothing is purged', async (t) => {
  const [store] = await twoStores(t)
  const clock = manualClock(startMs)
  const unfinished = { schema: 3, newest: 4, waitsFor: ['old (0.3.0)'], failure: null }
  const core = coreOf({ ...store, unfinishedUpgrade: () => unfinished }, clock)
  await store.commit(newNode('gpu-001'))
  const refused = await purgeNode(core, 'gpu-001', 'too early', operator, () => null)
  assert.equal(isRefusal(refused) && refused.code, 'UPGRADE_UNFINISHED')
})
