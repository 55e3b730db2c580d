import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Committed, Store } from '#plane/store/contract/store.ts'
import { StoreFault, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { peer, withPeer } from '../peers/peer.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { postgresDatabase, startPostgres, startStandby } from '../process/postgres-server.ts'
import { storeContract, type StoreUnderTest } from './contract.ts'
import {
  change,
  makeSigner,
  newNode,
  openPostgresStoreOn,
  putNode,
  read,
  someNode,
  someTimeMs,
  someToken,
  steppedTimers,
} from './harness.ts'
import { fleetRowsContract } from './fleet.ts'
import { issuerRowsContract } from './issuers.ts'
import { storeModel } from './model.ts'

const openEmpty = async (): Promise<StoreUnderTest> => {
  const ends: (() => unknown)[] = []
  const scope: Scope = { after: (run) => void ends.push(run as () => unknown) }
  const { target } = await postgresDatabase(scope, 'migrated')
  const signer = makeSigner()
  let store = await openPostgresStoreOn(target, signer)
  return {
    store,
    async reopen() {
      await store.close()
      store = await openPostgresStoreOn(target, signer)
      return store
    },
    async remove() {
      await store.close()
      for (const end of ends) await end()
    },
  }
}

if ('missing' in peer('postgres')) {
  test('PostgreSQL keeps the contract of a store', (t) => void withPeer(t, 'postgres'))
} else {
  storeContract('PostgreSQL', openEmpty)
  storeModel('PostgreSQL', openEmpty)
  fleetRowsContract('PostgreSQL', openEmpty)
  issuerRowsContract('PostgreSQL', openEmpty)
}

type Pair = { readonly one: Store; readonly other: Store; readonly published: readonly Committed[] }

/** Two replicas on one database, and what is published at the other. */
const openPair = async (t: TestContext): Promise<Pair> => {
  const { target } = await postgresDatabase(t)
  const signer = makeSigner()
  const open = async (): Promise<Store> => {
    const store = await openPostgresStoreOn(target, signer)
    cleanup(t, () => store.close())
    return store
  }
  const [one, other] = [await open(), await open()]
  const published: Committed[] = []
  other.onForeignCommit((committed) => void published.push(committed))
  return { one, other, published }
}

describe('two stores on one database', () => {
  test('what one replica commits the other reads at once, and gets over the feed', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other, published } = await openPair(t)
    const committed = await one.commit(newNode('n1'))
    assert(committed !== 'lost-race')
    assert.deepEqual(await other.get('node', 'n1'), { value: someNode('n1'), version: 1 })
    const [foreign] = await eventually('the other to be told', () => published.length > 0 && published)
    assert.deepEqual(foreign, { ...committed, origin: 'elsewhere' })
    assert.notEqual(await other.commit(newNode('n2')), 'lost-race')
    await one.commit(newNode('n3'))
    await eventually('the other to be told again', () => published.length > 1)
    assert.deepEqual(
      published.flatMap(({ entries }) => entries.map(({ entry }) => entry.node)),
      ['n1', 'n3'],
      'nobody is told of its own commits',
    )
  })

  test('a profile that one changes is never decided on by the other as it was before', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other, published } = await openPair(t)
    const settings = (value: number) =>
      change([read('profile', 'p', value - 1)], [{ put: 'profile', value: { name: 'p', lifetimeMs: value } as never }])
    await one.commit(settings(1))
    await eventually('the other to be told', () => published.length === 1)
    assert.equal((await other.get('profile', 'p'))?.version, 1)
    const changed = one.commit(settings(2))
    const decided = await changed.then(() => other.commit(change([read('profile', 'p', 1)], [])))
    assert.equal(decided, 'lost-race')
    assert.equal((await other.get('profile', 'p'))?.version, 2, 'read again after the race was lost')
    await one.commit(settings(3))
    await eventually('the change to arrive', async () => (await other.get('profile', 'p'))?.version === 3)
  })

  test('of callers spread over both with one token exactly one wins, in every round', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other } = await openPair(t)
    for (let round = 0; round < 10; round++) {
      const id = `t${round}`
      const fresh = someToken(id)
      await one.commit(change([read('token', fresh.hash, 0)], [{ put: 'token', value: fresh }]))
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, (_, caller) => {
          const node = `n${round}-${caller}`
          const state = { kind: 'used', spki: `key-${caller}`, node, atMs: 1 } as const
          return (caller % 2 === 0 ? one : other).commit({
            ...change([read('token', fresh.hash, 1), read('node', node, 0)], []),
            writes: [putNode(node), { put: 'token', value: someToken(id, { state }) }],
          })
        }),
      )
      assert.equal(outcomes.filter((outcome) => outcome !== 'lost-race').length, 1)
    }
    assert.equal((await one.countNodes()).registered, 10)
    assert.equal((await other.journal.verify()).kind, 'intact')
  })

  test('what each has seen of a node is kept', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other } = await openPair(t)
    one.observe('n1', { agentVersion: '1', source: '10.0.0.1' })
    other.observe('n1', { lastSeenMs: 5 })
    await one.close()
    assert.deepEqual((await other.observation('n1')).agentVersion, '1')
    assert.deepEqual((await other.observation('n1')).lastSeenMs, 5)
  })

  test('what has ended is removed by the leader, and by no replica that only believes it leads', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other } = await openPair(t)
    const value = { kind: 'epoch', node: 'n1', epoch: 1, atMs: 1, untilMs: 5, why: 'x', reason: 'unspecified' } as const
    await one.commit(change([], [{ put: 'denial', value }]))
    const [leads, follows] = one.replicas.leadership() === null ? [other, one] : [one, other]
    assert.notEqual(leads.replicas.leadership(), null)
    const laterMs = 5 + 31 * 86_400_000
    assert.equal(await follows.forget(laterMs), 0)
    assert.equal((await other.denials()).length, 1)
    assert.equal(await leads.forget(laterMs), 1)
    assert.deepEqual(await other.denials(), [])
  })

  test('what is done exclusively is done by one of them at a time', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { one, other } = await openPair(t)
    let inside = 0
    const turn = (store: Store): Promise<void> =>
      store.exclusively(async () => {
        assert.equal(++inside, 1)
        await store.countNodes()
        inside--
      })
    await Promise.all([one, other, one, other].map(turn))
  })
})

test('a replica that writes late what it saw earlier sets no time back', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target } = await postgresDatabase(t)
  const signer = makeSigner()
  for (const lastSeenMs of [9, 5]) {
    const store = await openPostgresStoreOn(target, signer)
    store.observe('n1', { lastSeenMs })
    await store.close()
  }
  const store = await openPostgresStoreOn(target, signer)
  const { lastSeenMs } = await store.observation('n1')
  await store.close()
  assert.equal(lastSeenMs, 9)
})

test('a newer schema is refused and left as it is', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target, connect } = await postgresDatabase(t)
  await (await openPostgresStoreOn(target, makeSigner())).close()
  const connection = await connect()
  await connection.exec('UPDATE muster_schema SET version = 999')
  await assert.rejects(openPostgresStoreOn(target, makeSigner()), (error) => {
    return error instanceof StoreRefused && error.code === 'SCHEMA_TOO_NEW'
  })
  const replicas = await connection.run({ name: 'replicas', text: 'SELECT number FROM replica' })
  assert.equal(replicas.count, 0, 'nobody has registered')
})

test('a standby is neither read nor written, also when it is all there is', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const primary = await startPostgres(t)
  const { target } = await primary.database(t)
  const standby = await startStandby(t, primary)
  const beside = { host: standby.folder, port: standby.port }
  const store = await openPostgresStoreOn({ ...target, hosts: [beside, ...target.hosts] }, makeSigner())
  cleanup(t, () => store.close())
  await store.commit(newNode('n1'))
  assert.notEqual(await store.get('node', 'n1'), null)
  await primary.stop('fast')
  await assert.rejects(store.get('node', 'n1'), StoreFault)
  await assert.rejects(store.countNodes(), StoreFault)
  await assert.rejects(store.commit(newNode('n2')), StoreFault)
  await assert.rejects(openPostgresStoreOn({ ...target, hosts: [beside] }, makeSigner()), StoreFault)
  await primary.start()
})

test('while the server is away nothing is committed and the store says so; it recovers without an operator', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const server = await startPostgres(t)
  const { target } = await server.database(t)
  const store = await openPostgresStoreOn(target, makeSigner())
  cleanup(t, () => store.close())
  const serves = (): boolean => store.trouble() === null && store.replicas.standing().kind === 'serving'
  await eventually('the store to serve', serves)
  await server.stop('crash')
  await assert.rejects(store.commit(newNode('n1')), StoreFault)
  assert(!serves())
  await server.start()
  await eventually('the store to serve again', serves, { withinMs: 20_000 })
  assert.notEqual(await store.commit(newNode('n1')), 'lost-race')
  assert.equal((await store.journal.verify()).kind, 'intact')
})

test('observations reach the database every few seconds without a commit', async (t) => {
  if (withPeer(t, 'postgres') === null) return
  const { target, connect } = await postgresDatabase(t)
  const connection = await connect()
  const { timers, tick } = steppedTimers()
  const store = await openPostgresStoreOn(target, makeSigner(), { timers })
  cleanup(t, () => store.close())
  store.observe('n1', { lastSeenMs: someTimeMs })
  const seen = { name: 'seen', text: 'SELECT node, last_seen_ms FROM observation' }
  assert.deepEqual((await connection.run(seen)).rows, [])
  tick()
  await eventually('the observation to be written', async () => (await connection.run(seen)).count === 1)
  assert.deepEqual((await connection.run(seen)).rows, [{ node: 'n1', last_seen_ms: someTimeMs }])
})
