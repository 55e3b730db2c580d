// What every store keeps, whatever is underneath. SQLite runs it in sqlite.test.ts; another store runs it by
// calling storeContract with a way to open an empty one.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Alert } from '#domain/alerts/alert.ts'
import type { Denial } from '#domain/core/certificate.ts'
import { type Change, type Write, decided } from '#domain/core/change.ts'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import type { Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { rolloutNodesKey } from '#domain/tasks/rollout.ts'
import { taskPlace } from '#domain/tasks/task.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import type { CommitGroup, Committed, JournalQuery, ListQuery, Store } from '#plane/store/contract/store.ts'
import { systemClock } from '#platform/clock.ts'
import { evidenceOf } from '../fakes/agent-words.ts'
import { noHolders } from '../fakes/no-holders.ts'
import { vclusterRow } from '../fakes/sample-rows.ts'
import { claimed, someResult, someTask } from '../fakes/task-rows.ts'
import { change, newNode, note, putNode, read, someCertificate, someNode, someTimeMs, someToken } from './harness.ts'

/** `reopen` closes the store in an orderly way and opens it again on what it kept. */
export type StoreUnderTest = { readonly store: Store; reopen(): Promise<Store>; remove(): Promise<void> }

const hardware = (mac: string, bmcSerial: string | null = null) => ({ hardware: { macs: [mac], bmcSerial } })
const revoked = { membership: { kind: 'revoked', sinceMs: 1, reason: 'gone', by: 'operator:test' } } as const
const everything: JournalQuery = { after: null, last: null, limit: 100, node: null, type: null }

const edge = (deletedAtMs: number | null): Profile => ({
  ...(shippedProfiles[0] as Profile),
  name: 'edge',
  deletedAtMs,
})
const { value: blue } = vclusterRow('blue')
const ended = { kind: 'expired', atMs: 5 } as const

const committed = async (store: Store, wanted: Change): Promise<Committed> => {
  const outcome = await store.commit(wanted)
  assert(outcome !== 'lost-race', 'this commit has nobody to lose to')
  return outcome
}

export const storeContract = (name: string, openEmpty: () => Promise<StoreUnderTest>): void => {
  describe(`${name} keeps the contract of a store`, () => {
    let under: StoreUnderTest
    let store: Store
    beforeEach(async () => {
      under = await openEmpty()
      store = under.store
    })
    afterEach(() => under.remove())

    describe('rows', () => {
      test('a row that is not there is null, a new one has version 1, every write adds one', async () => {
        assert.equal(await store.get('node', 'n1'), null)
        await committed(store, newNode('n1'))
        assert.deepEqual(await store.get('node', 'n1'), { value: someNode('n1'), version: 1 })
        await committed(store, change([read('node', 'n1', 1)], [putNode('n1', { epoch: 7 })]))
        assert.deepEqual(await store.get('node', 'n1'), { value: someNode('n1', { epoch: 7 }), version: 2 })
      })

      test('a report about a row that cannot be read is not written over it', async () => {
        await committed(store, newNode('n1'))
        await committed(store, change([read('node', 'n1', 1)], [putNode('n1', { epoch: 'one' as unknown as number })]))
        const unreadable = await store.get('node', 'n1')
        assert.equal(unreadable?.value.unreadable, 'no good epoch')
        const by = { actor: 'node:n1', source: null, correlation: null }
        const holder = { node: 'n1', condition: 'duplicate_identity', reason: 'r', evidence: {}, by } as const
        const feed = { publish: () => assert.fail('it was written') }
        await openSecondHolders({ store, feed, clock: systemClock }, noHolders).report(holder)
        const drained = async () =>
          decided(change([read('node', 'n1', 2)], [{ put: 'node', value: { ...unreadable.value, drain: 'drained' } }]))
        const said = await commitDecision({ store, feed }, drained)
        assert.equal(said.kind === 'refused' && said.code, 'NODE_STATE_CONFLICT')
        assert.deepEqual(await store.get('node', 'n1'), unreadable)
      })

      test('every kind of row comes back as it was put', async () => {
        const writes: Write[] = [
          putNode('n1', hardware('02:00:00:00:00:01', 'S1')),
          { put: 'token', value: someToken('t1') },
          { put: 'certificate', value: someCertificate('a1') },
          {
            put: 'denial',
            value: { kind: 'epoch', node: 'n1', epoch: 1, atMs: 1, untilMs: 5, why: 'x', reason: 'unspecified' },
          },
          { put: 'key-ban', value: { spki: 'k1', why: 'leaked "key" \u0000 \ud83d\ude00', atMs: 1 } },
        ]
        await committed(store, change([read('node', 'n1', 0), read('token', 'hash-of-t1', 0)], writes))
        const keys = { node: 'n1', token: 'hash-of-t1', certificate: 'ca/a1', denial: 'epoch/1/n1', 'key-ban': 'k1' }
        for (const write of writes) {
          const row = await store.get(write.put, keys[write.put as keyof typeof keys])
          assert.deepEqual(row, { value: write.value, version: 1 })
        }
      })

      test('a removed row is gone with what belongs to it, and a new one has a version it never had', async () => {
        const held = hardware('02:00:00:00:00:01', 'S1')
        await committed(store, newNode('n1', held))
        await committed(store, change([read('node', 'n1', 1)], [putNode('n1', { ...held, ...revoked })]))
        store.observe('n1', { agentVersion: '0.4.0' })
        store = await under.reopen()
        assert.equal((await store.observation('n1')).agentVersion, '0.4.0')
        const removal = { ...change([read('node', 'n1', 2)], []), removes: [{ row: 'node', key: 'n1' }] as const }
        await committed(store, removal)
        assert.equal(await store.get('node', 'n1'), null)
        assert.deepEqual(await store.nodesByHardware(held.hardware), [])
        assert.equal((await store.observation('n1')).agentVersion, null)
        assert.equal((await store.countNodes()).revoked, 0)
        assert.equal(await store.commit(change([read('node', 'n1', 2)], [putNode('n1')])), 'lost-race')
        assert.equal(await store.commit(removal), 'lost-race')

        await committed(store, change([{ ...read('node', 'n1', 0), removedAt: 2 }], [putNode('n1', held)]))
        assert.deepEqual(await store.get('node', 'n1'), { value: someNode('n1', held), version: 3 })
        assert.equal((await store.journal.verify()).kind, 'intact')
      })

      test('a row that was not read, or is written as well, is not removed', async () => {
        await committed(store, newNode('n1'))
        const removes = [{ row: 'node', key: 'n1' }] as const
        await assert.rejects(store.commit({ ...change([], []), removes }), /without naming the version/)
        const both = { ...change([read('node', 'n1', 1)], [putNode('n1')]), removes }
        await assert.rejects(store.commit(both), /writes node n1 and removes it/)
        assert.equal((await store.get('node', 'n1'))?.version, 1)
      })

      test('what relies on a profile being unused loses to a node under it, also in the same group', async () => {
        const profile = (version: number, deletedAtMs: number | null): Change => ({
          ...change([read('profile', 'edge', version)], [{ put: 'profile', value: edge(deletedAtMs) }]),
          ...(deletedAtMs === null ? {} : { unused: [{ kind: 'profile', name: 'edge' }] }),
        })
        const joining = (id: string, version: number): Change =>
          change([read('node', id, 0), read('profile', 'edge', version)], [putNode(id, { profile: 'edge' })])
        await committed(store, profile(0, null))
        const [joined, lost] = await Promise.all([store.commit(joining('n1', 1)), store.commit(profile(1, 5))])
        assert.deepEqual([joined === 'lost-race', lost], [false, 'lost-race'])
        assert.equal(await store.commit(profile(1, 5)), 'lost-race', 'in a group of its own')
        await committed(store, change([read('node', 'n1', 1)], [putNode('n1', { profile: 'edge', ...revoked })]))
        const [deleted, late] = await Promise.all([store.commit(profile(1, 5)), store.commit(joining('n2', 1))])
        assert.deepEqual([deleted === 'lost-race', late], [false, 'lost-race'])
        assert.equal((await store.get('profile', 'edge'))?.value.deletedAtMs, 5)
        assert.deepEqual(await store.profiles(), [])
      })

      test('what relies on a vCluster being empty loses to a node in it, and has to write its row', async () => {
        const inBlue = change([read('node', 'n1', 0)], [putNode('n1', { assignment: 'blue' })])
        const unused = [{ kind: 'vcluster', name: 'blue' }] as const
        const deletion = { ...change([read('vcluster', 'blue', 0)], [{ put: 'vcluster', value: blue }]), unused }
        await assert.rejects(store.commit({ ...change([], []), unused }), /without writing it/)
        await committed(store, inBlue)
        assert.equal(await store.commit(deletion), 'lost-race')
        await committed(store, change([read('node', 'n1', 1)], [putNode('n1')]))
        await committed(store, deletion)
      })

      test('of a tag and a hardware profile that would put a node under two, one loses, also in the same group', async () => {
        const machine = (...tags: string[]) => ({ machine: { ...nothingTagged, tags } })
        const put = (tag: string, removedAtMs: number | null = null): Write => ({
          put: 'hardware-profile',
          value: {
            ...{ tag, description: '', firmware: 'x', tags: [], slots: 0, sku: 's', removedAtMs },
            ...{ createdAtMs: 1, createdBy: 'operator:test' },
          },
        })
        const making = (tag: string): Change => ({
          ...change([read('hardware-profile', tag, 0)], [put(tag)]),
          soleTags: [tag],
        })
        await assert.rejects(store.commit({ ...change([], []), soleTags: ['h100'] }), /without writing/)
        await committed(store, making('h100'))
        await committed(store, change([read('node', 'n1', 0)], [putNode('n1', machine('h100', 'rack'))]))
        assert.equal(await store.commit(making('rack')), 'lost-race')
        await committed(store, making('rac'))

        await committed(store, newNode('n2'))
        const reads = [read('node', 'n2', 1), read('hardware-profile', 'a100', 0)]
        const tagging = change(reads, [putNode('n2', machine('a100', 'h100'))])
        const [tagged, lost] = await Promise.all([store.commit(tagging), store.commit(making('a100'))])
        assert.deepEqual([tagged === 'lost-race', lost], [false, 'lost-race'])

        await committed(store, change([read('node', 'n1', 1)], [putNode('n1', machine('x', 'y'))]))
        const [made, second] = await Promise.all([store.commit(making('x')), store.commit(making('y'))])
        assert.deepEqual([made === 'lost-race', second], [false, 'lost-race'])
        const places = [read('hardware-profile', 'x', 1), read('hardware-profile', 'y', 0)]
        await committed(store, { ...change(places, [put('x', 5), put('y')]), soleTags: ['y'] })
      })

      test('rows are found by what their documents say of a node', async () => {
        const key = (publicKey: string, node: string) => ({ publicKey, node, sinceMs: 1, endedAtMs: null })
        const claim = (spki: string, ...nodes: string[]) => ({
          spki,
          holders: nodes.map((node) => ({ node, use: 'tls' as const, sinceMs: 1 })),
        })
        const places = [read('wireguard-key', 'w1', 0), read('wireguard-key', 'w2', 0)]
        const spkis = ['k1', 'k2', 'k3'].map((spki) => read('key-claim', spki, 0))
        const writes: Write[] = [
          { put: 'wireguard-key', value: key('w1', 'n1') },
          { put: 'wireguard-key', value: key('w2', 'n2') },
          { put: 'key-claim', value: claim('k1', 'n1') },
          { put: 'key-claim', value: claim('k2', 'n2', 'n1') },
          { put: 'key-claim', value: claim('k3', 'n2') },
        ]
        await committed(store, change([...places, ...spkis], writes))
        const page = { after: null, limit: 10 }
        const keys = await store.list('wireguard-key', { ...page, where: { node: 'n1' } })
        assert.deepEqual(
          keys.map(({ value }) => value.publicKey),
          ['w1'],
        )
        const claims = await store.list('key-claim', { ...page, where: { holder: 'n2', shared: 0 } })
        assert.deepEqual(
          claims.map(({ value }) => value.spki),
          ['k3'],
        )
      })

      test('rows are listed in the order of a column, behind a place, and without those that have no value there', async () => {
        const tasks = [3, 1, 2].map((at) =>
          someTask({ id: `task_${'abc'[at % 3]?.repeat(26)}`, createdAtMs: at, ...(at === 2 && { state: ended }) }),
        )
        const reads = tasks.map(({ id }) => read('task', id, 0))
        await committed(
          store,
          change(
            reads,
            tasks.map((value) => ({ put: 'task', value }) as const),
          ),
        )
        const timesOf = async (query: Omit<ListQuery, 'limit'>): Promise<number[]> =>
          (await store.list('task', { ...query, limit: 10 })).map(({ value }) => value.createdAtMs)
        assert.deepEqual(await timesOf({ order: 'sort_key', after: null }), [1, 2, 3])
        assert.deepEqual(await timesOf({ order: 'sort_key', after: taskPlace(tasks[1] ?? someTask()) }), [2, 3])
        assert.deepEqual(await timesOf({ order: 'due', after: null, where: { node: 'gpu-001' } }), [3, 1])
        assert.equal(await store.countQueuedTasks(), 2)
        assert.deepEqual([...(await store.countQueuedOfWorkers())], [])
      })

      test('the queued tasks of workers are counted by worker', async () => {
        const by = ['worker:east.a', 'worker:east.a', 'worker:west.b', 'operator:key-1', 'worker:east.c'] as const
        const tasks = by.map((queuer, at) => {
          const [kind, id] = queuer.split(':') as ['worker' | 'operator', string]
          const state = id === 'east.c' ? ended : ({ kind: 'queued' } as const)
          return someTask({ id: `task_${'abcde'[at]?.repeat(26)}`, queuedBy: { kind, id, name: id }, state })
        })
        await committed(
          store,
          change(
            tasks.map(({ id }) => read('task', id, 0)),
            tasks.map((value) => ({ put: 'task', value }) as const),
          ),
        )
        const counts = [...(await store.countQueuedOfWorkers())].toSorted()
        assert.deepEqual(counts, [
          ['east.a', 2],
          ['west.b', 1],
        ])
      })

      test('of a rollout the open tasks are counted, and the failed ones up to a number', async () => {
        const over = (kind: 'completed' | 'failed' | 'unknown') =>
          ({ ...claimed(), kind, endedAtMs: 5, result: someResult() }) as const
        const states = [
          { kind: 'queued' } as const,
          claimed(),
          over('completed'),
          ended,
          over('unknown'),
          over('failed'),
        ]
        const tasks = states.map((state, at) =>
          someTask({ id: `task_${'abcdef'[at]?.repeat(26)}`, rollout: 'r1', state }),
        )
        const other = someTask({ rollout: 'r2' })
        const rows = [...tasks, { ...other, id: `task_${'z'.repeat(26)}` }]
        await committed(
          store,
          change(
            rows.map(({ id }) => read('task', id, 0)),
            rows.map((value) => ({ put: 'task', value }) as const),
          ),
        )
        assert.deepEqual(await store.countOpenAndFailed('r1', 100), { open: 2, failed: 3 })
        assert.deepEqual(await store.countOpenAndFailed('r1', 2), { open: 2, failed: 2 })
        assert.deepEqual(await store.countOpenAndFailed('none', 2), { open: 0, failed: 0 })
        assert.deepEqual((await store.countTasksOf('r1')).completed, 1)
      })

      test('what was committed is there after closing and opening again', async () => {
        await committed(store, newNode('n1'))
        store = await under.reopen()
        assert.deepEqual(await store.get('node', 'n1'), { value: someNode('n1'), version: 1 })
        assert.equal((await store.journal.read(everything)).length, 1)
      })
    })

    describe('races', () => {
      test('of two commits that read the same version, one is answered lost-race', async () => {
        await committed(store, newNode('n1'))
        const outcomes = await Promise.all(
          [1, 2].map((epoch) => store.commit(change([read('node', 'n1', 1)], [putNode('n1', { epoch })]))),
        )
        assert.deepEqual(
          outcomes.map((outcome) => outcome === 'lost-race'),
          [false, true],
        )
        assert.equal((await store.get('node', 'n1'))?.value.epoch, 1)
      })

      test('of a removal and a change of one row one is committed, in either order', async () => {
        const removes = [{ row: 'node', key: 'n1' }] as const
        await committed(store, newNode('n1'))
        const changed = change([read('node', 'n1', 1)], [putNode('n1', { epoch: 2 })])
        const removed = { ...change([read('node', 'n1', 1)], []), removes }
        const first = await Promise.all([store.commit(changed), store.commit(removed)])
        assert.deepEqual(
          first.map((outcome) => outcome === 'lost-race'),
          [false, true],
        )
        const again = { ...change([read('node', 'n1', 2)], []), removes }
        const late = change([read('node', 'n1', 2)], [putNode('n1', { epoch: 3 })])
        const second = await Promise.all([store.commit(again), store.commit(late)])
        assert.deepEqual(
          second.map((outcome) => outcome === 'lost-race'),
          [false, true],
        )
        assert.equal(await store.get('node', 'n1'), null)
      })

      test('a lost race costs the other commits of its group nothing', async () => {
        await committed(store, newNode('n1'))
        const outcomes = await Promise.all([
          store.commit(newNode('n2')),
          store.commit(change([read('node', 'n1', 9)], [putNode('n1')])),
          store.commit(newNode('n3')),
        ])
        assert.deepEqual(
          outcomes.map((outcome) => outcome === 'lost-race'),
          [false, true, false],
        )
        assert.equal((await store.journal.read(everything)).length, 3)
        assert.equal((await store.journal.verify()).kind, 'intact')
      })

      test('a row that was read but not written still decides the race', async () => {
        await committed(store, newNode('n1'))
        await committed(store, newNode('n2'))
        const revocation = change([read('node', 'n1', 1)], [putNode('n1', revoked)])
        const renewal = change([read('node', 'n1', 1), read('node', 'n2', 1)], [putNode('n2', { epoch: 1 })])
        const [first, second] = await Promise.all([store.commit(revocation), store.commit(renewal)])
        assert.notEqual(first, 'lost-race')
        assert.equal(second, 'lost-race')
        assert.equal((await store.get('node', 'n2'))?.version, 1)
      })

      test('a decision that relied on a row being absent loses once it is there', async () => {
        await committed(store, change([], [{ put: 'key-ban', value: { spki: 'k', why: 'x', atMs: 1 } }]))
        const enrollment = change([read('key-ban', 'k', 0), read('node', 'n1', 0)], [putNode('n1')])
        assert.equal(await store.commit(enrollment), 'lost-race')
        assert.equal(await store.get('node', 'n1'), null)
      })

      test('of 50 callers with one token exactly one wins', async () => {
        await committed(store, change([read('token', 'hash-of-t', 0)], [{ put: 'token', value: someToken('t') }]))
        const outcomes = await Promise.all(
          Array.from({ length: 50 }, (_, caller) => {
            const state = { kind: 'used', spki: `key-${caller}`, node: `n${caller}`, atMs: 1 } as const
            return store.commit({
              ...change([read('token', 'hash-of-t', 1), read('node', `n${caller}`, 0)], []),
              writes: [putNode(`n${caller}`), { put: 'token', value: someToken('t', { state }) }],
            })
          }),
        )
        assert.equal(outcomes.filter((outcome) => outcome !== 'lost-race').length, 1)
        assert.equal((await store.countNodes()).registered, 1)
      })
    })

    describe('unique values', () => {
      test('two nodes cannot hold one MAC address, nor one BMC serial', async () => {
        await committed(store, newNode('n1', hardware('02:00:00:00:00:01', 'S1')))
        assert.equal(await store.commit(newNode('n2', hardware('02:00:00:00:00:01'))), 'lost-race')
        assert.equal(await store.commit(newNode('n3', hardware('02:00:00:00:00:03', 'S1'))), 'lost-race')
        assert.deepEqual((await store.countNodes()).registered, 1)
      })

      test('a clash inside a group leaves nothing of the loser and all of the others', async () => {
        const outcomes = await Promise.all([
          store.commit(newNode('n1', hardware('02:00:00:00:00:01'))),
          store.commit(
            newNode('n2', { hardware: { macs: ['02:00:00:00:00:01', '02:00:00:00:00:02'], bmcSerial: null } }),
          ),
          store.commit(newNode('n3', hardware('02:00:00:00:00:02'))),
        ])
        assert.deepEqual(
          outcomes.map((outcome) => outcome === 'lost-race'),
          [false, true, false],
        )
        assert.equal(await store.get('node', 'n2'), null)
        const entries = await store.journal.read(everything)
        assert.deepEqual(
          entries.map((stored) => stored.entry.node),
          ['n1', 'n3'],
        )
      })

      test('a changed node gives up what it no longer has; a revoked one keeps it until another node takes it', async () => {
        await committed(store, newNode('n1', hardware('02:00:00:00:00:01')))
        await committed(store, newNode('n2', hardware('02:00:00:00:00:02')))
        await committed(
          store,
          change(
            [read('node', 'n1', 1), read('node', 'n2', 1)],
            [
              putNode('n1', { ...hardware('02:00:00:00:00:01'), ...revoked }),
              putNode('n2', hardware('02:00:00:00:00:03')),
            ],
          ),
        )
        const macs = ['02:00:00:00:00:01', '02:00:00:00:00:02', '02:00:00:00:00:03']
        const found = async (): Promise<string[]> =>
          (await store.nodesByHardware({ macs, bmcSerial: null })).map((row) => row.value.id)
        assert.deepEqual(await found(), ['n1', 'n2'])
        await committed(store, newNode('n3', hardware('02:00:00:00:00:01')))
        assert.deepEqual(await found(), ['n3', 'n2'])
        assert.equal(
          await store.commit(change([read('node', 'n1', 2)], [putNode('n1', hardware('02:00:00:00:00:01'))])),
          'lost-race',
        )
      })

      test('an address may move between two nodes in one change', async () => {
        await committed(store, newNode('n1', hardware('02:00:00:00:00:01')))
        await committed(store, newNode('n2', hardware('02:00:00:00:00:02')))
        await committed(
          store,
          change(
            [read('node', 'n1', 1), read('node', 'n2', 1)],
            [putNode('n1', hardware('02:00:00:00:00:02')), putNode('n2', hardware('02:00:00:00:00:01'))],
          ),
        )
        const [holder] = await store.nodesByHardware({ macs: ['02:00:00:00:00:02'], bmcSerial: null })
        assert.equal(holder?.value.id, 'n1')
      })

      test('a certificate cannot take the place of one in the store', async () => {
        const issue = change([], [{ put: 'certificate', value: someCertificate('a1') }])
        await committed(store, issue)
        assert.equal(await store.commit(issue), 'lost-race')
      })

      test('two tokens cannot have one id', async () => {
        const make = (hash: string) =>
          change([read('token', hash, 0)], [{ put: 'token', value: someToken('t', { hash }) }])
        await committed(store, make('h1'))
        assert.equal(await store.commit(make('h2')), 'lost-race')
      })
    })

    describe('what may come twice', () => {
      const denial = (untilMs: number, reason: Denial['reason'] = 'unspecified', version = 0, atMs = 1) => {
        const about = { kind: 'epoch', node: 'n1', epoch: 1, atMs } as const
        return change(version === 0 ? [] : [read('denial', 'epoch/1/n1', version)], [
          { put: 'denial', value: { ...about, untilMs, why: `until ${untilMs}`, reason } },
        ])
      }

      test('of two denials the one that lasts longer stays, in the store and in what is published', async () => {
        for (const [untilMs, kept] of [
          [50, 50],
          [20, 50],
          [90, 90],
        ] as const) {
          const outcome = await committed(store, denial(untilMs))
          const [write] = outcome.writes
          assert(write?.put === 'denial')
          assert.equal(write.value.untilMs, kept)
          assert.deepEqual(
            (await store.denials()).map((each) => each.untilMs),
            [kept],
          )
        }
      })

      test('what is denied again is denied since the first time, so that it leaves no revocation list by that', async () => {
        await committed(store, denial(50, 'unspecified', 0, 7))
        for (const again of [denial(90, 'unspecified', 0, 95), denial(90, 'superseded', 0, 99)]) {
          const [write] = (await committed(store, again)).writes
          assert(write?.put === 'denial')
          assert.deepEqual([write.value.atMs, write.value.untilMs], [7, 90])
          assert.deepEqual((await store.get('denial', 'epoch/1/n1'))?.value, write.value)
        }
      })

      test('of two denials that last as long the one with a reason stays', async () => {
        await committed(store, denial(50))
        for (const given of ['key-compromise', 'unspecified', 'superseded'] as const) {
          const version = (await store.get('denial', 'epoch/1/n1'))?.version ?? 0
          const [write] = (await committed(store, denial(50, given, version))).writes
          assert(write?.put === 'denial')
          assert.equal(write.value.reason, 'key-compromise')
          assert.equal((await store.get('denial', 'epoch/1/n1'))?.value.reason, 'key-compromise')
        }
        assert.equal(await store.commit(denial(50, 'superseded', 1)), 'lost-race')
      })

      test('of two bans of a key the first stays', async () => {
        const ban = (why: string) => change([], [{ put: 'key-ban', value: { spki: 'k', why, atMs: 1 } }])
        await committed(store, ban('first'))
        await committed(store, ban('second'))
        assert.deepEqual((await store.get('key-ban', 'k'))?.value.why, 'first')
      })
    })

    describe('mistakes of the caller', () => {
      test('overwriting a row unread is thrown back, and its neighbours are committed', async () => {
        await committed(store, newNode('n1'))
        const [unread, fine] = await Promise.allSettled([
          store.commit(change([], [putNode('n1')])),
          store.commit(newNode('n2')),
        ])
        assert.equal(unread.status, 'rejected')
        assert(fine.status === 'fulfilled' && fine.value !== 'lost-race')
      })

      test('an entry that cannot be written fails no other commit', async () => {
        const bad = { ...newNode('n1'), entries: [{ ...note('n1'), body: { x: NaN } }] as const }
        const long = { ...newNode('n1'), entries: [{ ...note('n1'), body: { x: 'x'.repeat(70_000) } }] as const }
        const outcomes = await Promise.allSettled([store.commit(bad), store.commit(long), store.commit(newNode('n2'))])
        assert.deepEqual(
          outcomes.map((outcome) => outcome.status),
          ['rejected', 'rejected', 'fulfilled'],
        )
        assert.equal((await store.journal.read(everything)).length, 1)
      })
    })

    describe('lists', () => {
      test('nodes come in the order of their ids, by membership and profile, a page at a time', async () => {
        for (const id of ['c', 'a', 'b']) await committed(store, newNode(id))
        await committed(store, newNode('d', { ...revoked, profile: 'mesh-paas' }))
        const ids = async (query: Partial<Parameters<Store['nodes']>[0]>) =>
          (await store.nodes({ membership: null, profile: null, after: null, limit: 10, ...query })).map(
            (row) => row.value.id,
          )
        assert.deepEqual(await ids({}), ['a', 'b', 'c', 'd'])
        assert.deepEqual(await ids({ after: 'a', limit: 2 }), ['b', 'c'])
        assert.deepEqual(await ids({ membership: 'registered' }), ['a', 'b', 'c'])
        assert.deepEqual(await ids({ profile: 'mesh-paas' }), ['d'])
        assert.deepEqual(await ids({ profile: 'mesh-paas', membership: 'registered' }), [])
        assert.deepEqual(await store.countNodes(), {
          registered: 3,
          enrolled: 0,
          active: 0,
          inactive: 0,
          quarantined: 0,
          revoked: 1,
        })
      })

      test('how many nodes each vCluster has is counted', async () => {
        for (const id of ['a', 'b']) await committed(store, newNode(id, { assignment: 'blue' }))
        await committed(store, newNode('c', { assignment: 'green' }))
        await committed(store, newNode('d'))
        assert.deepEqual([...(await store.countAssigned())].toSorted(), [
          ['blue', 2],
          ['green', 1],
        ])
      })

      test('tokens come newest first, found by id and by the node they are for or let in', async () => {
        const forNode = { scope: { kind: 'node', node: 'n1', tenure: 1 } } as const
        const letIn = { state: { kind: 'used', spki: 'k', node: 'n1', atMs: 1 } } as const
        for (const value of [someToken('t1', forNode), someToken('t2'), someToken('t3', letIn)])
          await committed(store, change([read('token', value.hash, 0)], [{ put: 'token', value }]))
        const ids = async (node: string | null, limit: number) =>
          (await store.tokens({ node, limit })).map((row) => row.value.id)
        assert.deepEqual(await ids(null, 2), ['t3', 't2'])
        assert.deepEqual(await ids('n1', 9), ['t3', 't1'])
        const after = async (node: string | null, id: string) =>
          (await store.tokens({ node, after: id, limit: 1 })).map((row) => row.value.id)
        assert.deepEqual(
          [await after(null, 't3'), await after('n1', 't3'), await after('n1', 't1')],
          [['t2'], ['t1'], []],
        )
        assert.equal((await store.tokenById('t2'))?.value.hash, 'hash-of-t2')
        assert.equal(await store.tokenById('t9'), null)
      })
    })

    describe('the journal', () => {
      test('gives every entry its place, domain, unique operation and correlation', async () => {
        const outcome = await committed(store, {
          ...newNode('n1'),
          entries: [note('n1'), { ...note('n1', 'host.enrolled'), correlation: 'story' }],
        })
        const [first, second] = outcome.entries.map((stored) => stored.entry)
        assert(first && second)
        assert.deepEqual([first.schema, first.domain, first.sequence, second.sequence], [1, 'test.example', 1, 2])
        assert.notEqual(first.operation, second.operation)
        assert.equal(first.operation, `${first.correlation}-0`)
        assert.equal(second.correlation, 'story')
        assert.deepEqual(await store.journal.read(everything), outcome.entries)
        assert.deepEqual(JSON.parse(outcome.entries[0]?.bytes ?? ''), first)
      })

      test('is read behind a cursor, from the end, by node and by type', async () => {
        for (const id of ['n1', 'n2', 'n1']) {
          const row = await store.get('node', id)
          await committed(store, {
            reads: [read('node', id, row?.version ?? 0)],
            writes: [putNode(id)],
            entries: [note(id, row ? 'node.lapsed' : 'node.registered')],
          })
        }
        const sequences = async (query: Partial<JournalQuery>) =>
          (await store.journal.read({ ...everything, ...query })).map((stored) => stored.entry.sequence)
        const [first] = await store.journal.read({ ...everything, limit: 1 })
        assert(first)
        assert.deepEqual(await sequences({ after: first.cursor }), [2, 3])
        assert.deepEqual(await sequences({ last: 2 }), [2, 3])
        assert.deepEqual(await sequences({ node: 'n1' }), [1, 3])
        assert.deepEqual(await sequences({ type: 'node.registered' }), [1, 2])
        assert.deepEqual(await sequences({ node: 'n1', type: 'node.registered', after: first.cursor }), [])
        await assert.rejects(store.journal.read({ ...everything, after: 'nonsense' as never }))
      })

      test('is read from a time on', async () => {
        assert.equal(await store.journal.placeBefore(1), null)
        for (const [at, atMs] of [10, 20, 20, 30, 40].entries())
          await committed(store, { ...newNode(`n${at}`), entries: [{ ...note(`n${at}`), atMs }] })
        const since = async (atMs: number) =>
          (await store.journal.read({ ...everything, after: await store.journal.placeBefore(atMs) })).map(
            (stored) => stored.entry.sequence,
          )
        assert.deepEqual(
          [await since(0), await since(10)],
          [
            [1, 2, 3, 4, 5],
            [1, 2, 3, 4, 5],
          ],
        )
        assert.deepEqual(
          [await since(11), await since(20), await since(21)],
          [
            [2, 3, 4, 5],
            [2, 3, 4, 5],
            [4, 5],
          ],
        )
        assert.deepEqual([await since(40), await since(41)], [[5], []])
      })

      test('has a signed head and verifies, empty or not, also after a restart', async () => {
        assert.deepEqual(await store.journal.verify(), { kind: 'intact', entries: 0, heads: [] })
        assert.deepEqual(await store.journal.heads(), [])
        for (let i = 0; i < 5; i++) await Promise.all([0, 1, 2].map((k) => store.commit(newNode(`n${i}-${k}`))))
        store = await under.reopen()
        await committed(store, newNode('late'))
        const heads = await store.journal.heads()
        assert.deepEqual(
          heads.map(({ sequence }) => sequence),
          [16],
        )
        assert.deepEqual(await store.journal.verify(), { kind: 'intact', entries: 16, heads })
      })

      test('L8: a place that was seen before has to be in its chain, also after a restart', async () => {
        for (let i = 0; i < 3; i++) await committed(store, newNode(`n${i}`))
        const [head] = await store.journal.heads()
        assert(head !== undefined)
        const { chain, sequence, hash } = head
        store = await under.reopen()
        const verify = async (known: { chain: string; sequence: number; hash: string }) => {
          const found = await store.journal.verify({ known: [known] })
          return found.kind === 'intact' ? 'intact' : `${found.chain} ${found.from} ${found.why}`
        }
        assert.equal(await verify({ chain, sequence, hash }), 'intact')
        assert.match(await verify({ chain, sequence: 4, hash }), new RegExp(`^${chain} 4 entry 4 was there before`))
        assert.match(await verify({ chain, sequence, hash: '00' }), /entry 3 is another one than was there before/)
        assert.match(await verify({ chain: 'GONE', sequence: 1, hash }), /^GONE 1 entry 1 was there before/)
      })

      test('the head that verification reports is one that it has verified, whatever is appended meanwhile', async () => {
        for (let i = 0; i < 40; i++) await committed(store, newNode(`n${i}`))
        const verifying = store.journal.verify()
        await Promise.all(Array.from({ length: 20 }, (_, at) => store.commit(newNode(`late${at}`))))
        const verified = await verifying
        assert(verified.kind === 'intact')
        assert.deepEqual(
          verified.heads.map(({ sequence }) => sequence),
          [verified.entries],
        )
      })

      test('every entry is proven by the signed head of its group, and no other place is', async () => {
        await Promise.all(Array.from({ length: 20 }, (_, at) => store.commit(newNode(`n${at}`))))
        const entries = await store.journal.read(everything)
        for (const { entry } of entries) assert.equal(await store.journal.isProven(entry.chain, entry.sequence), true)
        const chain = entries[0]?.entry.chain ?? ''
        for (const sequence of [0, 21]) assert.equal(await store.journal.isProven(chain, sequence), false)
        assert.equal(await store.journal.isProven('GONE', 1), false)
        assert.equal(await store.journal.isWhole(), true)
      })
    })

    describe('observations', () => {
      test('are merged field by field and seen at once', async () => {
        const nothing = {
          lastSeenMs: null,
          agentVersion: null,
          source: null,
          configRevision: null,
          report: null,
          rehearsedAtMs: null,
          evidence: null,
          capabilities: null,
          overlay: null,
          outputs: null,
          taskVerifiers: null,
          issuerRoots: null,
        }
        assert.deepEqual(await store.observation('n1'), nothing)
        store.observe('n1', { lastSeenMs: 5, agentVersion: '1' })
        store.observe('n1', { lastSeenMs: 6 })
        assert.deepEqual(await store.observation('n1'), { ...nothing, lastSeenMs: 6, agentVersion: '1' })
      })

      test('the last rehearsal of a node is readable before and after it is written', async () => {
        assert.equal(await store.rehearsedAtMs('n1'), null)
        store.observe('n1', { rehearsedAtMs: 7 })
        assert.equal(await store.rehearsedAtMs('n1'), 7)
        store = await under.reopen()
        assert.equal(await store.rehearsedAtMs('n1'), 7)
      })

      test('nodes that are not revoked are counted by the number of task verifiers they have reported', async () => {
        for (const [id, changes] of [
          ['n1', {}],
          ['n2', {}],
          ['n3', revoked],
        ] as const)
          await committed(store, newNode(id, changes))
        for (const [node, taskVerifiers] of [
          ['n1', 7],
          ['n2', 7],
          ['n3', 7],
          ['n1', 8],
        ] as const)
          store.observe(node, { taskVerifiers })
        store = await under.reopen()
        assert.deepEqual([...(await store.countTaskVerifiers())].sort(), [
          [7, 1],
          [8, 1],
        ])
        assert.equal((await store.observation('n1')).taskVerifiers, 8)
      })

      test('survive an orderly close, and leave no entry', async () => {
        const evidence = evidenceOf('n1', { machine: 'f'.repeat(64) })
        store.observe('n1', { lastSeenMs: 5, source: '10.0.0.1', evidence })
        store = await under.reopen()
        store.observe('n1', { configRevision: 3 })
        const seen = { lastSeenMs: 5, agentVersion: null, source: '10.0.0.1', configRevision: 3 }
        const others = {
          report: null,
          rehearsedAtMs: null,
          capabilities: null,
          overlay: null,
          outputs: null,
          taskVerifiers: null,
          issuerRoots: null,
        }
        assert.deepEqual(await store.observation('n1'), { ...seen, ...others, evidence })
        assert.equal((await store.journal.read(everything)).length, 0)
      })
    })

    describe('alerts', () => {
      const alert = (subject: string, id: string, state: Alert['state'] = { kind: 'open' }): Alert => ({
        ...{ id, kind: 'cert_expired', subject, node: subject, severity: 'critical', sinceMs: 1, reason: 'x', state },
      })
      const put = async (value: Alert): Promise<void> => {
        const key = `cert_expired/${value.subject}`
        const version = (await store.get('alert', key))?.version ?? 0
        await committed(store, change([read('alert', key, version)], [{ put: 'alert', value }]))
      }
      const ids = async (unresolvedOnly: boolean, after: string | null = null, limit = 10): Promise<string[]> =>
        (await store.alerts({ unresolvedOnly, after, limit })).map(({ value }) => value.id)

      test('come in the order they were raised in, a page at a time, with or without those that are resolved', async () => {
        await put(alert('n1', 'A1'))
        await put(alert('n2', 'A2', { kind: 'resolved', atMs: 2 }))
        await put(alert('n3', 'A3'))
        assert.deepEqual(await ids(true), ['A1', 'A3'])
        assert.deepEqual(await ids(false, 'A1', 1), ['A2'])
        // Raised again, it is the newest.
        await put(alert('n1', 'A4'))
        assert.deepEqual(await ids(true), ['A3', 'A4'])
        assert.equal(await store.alertById('A1'), null)
        assert.equal((await store.alertById('A4'))?.value.subject, 'n1')
      })

      test('how far a webhook has come is remembered, and is no entry', async () => {
        assert.equal(await store.webhookProgress(), null)
        const { entries } = await committed(store, newNode('n1'))
        const progress = { after: entries[0]?.cursor ?? null, settled: ['a', 'b'] }
        await store.keepWebhookProgress({ after: null, settled: [] })
        await store.keepWebhookProgress(progress)
        store = await under.reopen()
        assert.deepEqual(await store.webhookProgress(), progress)
        assert.equal((await store.journal.read(everything)).length, 1)
      })

      test('how long planes have led is added up, and is no entry', async () => {
        assert.equal(await store.lived(), 0)
        await store.addLived(1500)
        store = await under.reopen()
        await store.addLived(250.7)
        assert.equal(await store.lived(), 1750)
        assert.equal((await store.journal.read(everything)).length, 0)
      })
    })

    test('every group of commits is reported, with its outcome', async () => {
      const groups: CommitGroup[] = []
      store.onCommitGroup((group) => void groups.push(group))
      await Promise.all([store.commit(newNode('n1')), store.commit(newNode('n1')), store.commit(newNode('n2'))])
      assert.equal(
        groups.reduce((sum, { commits }) => sum + commits, 0),
        3,
      )
      assert.equal(
        groups.reduce((sum, { lostRaces }) => sum + lostRaces, 0),
        1,
      )
      assert.ok(groups.every(({ failed, ms }) => !failed && ms >= 0))
    })

    test('what can no longer matter is forgotten, and nothing else', async () => {
      const dayMs = 86_400_000
      const ends = [someTimeMs - 31 * dayMs, someTimeMs - 29 * dayMs, someTimeMs + dayMs]
      const writes = ends.flatMap((endMs, index): Write[] => [
        { put: 'certificate', value: someCertificate(`a${index}`, { notAfterMs: endMs }) },
        {
          put: 'denial',
          value: {
            kind: 'certificate',
            issuer: 'ca',
            serial: `a${index}`,
            atMs: 1,
            untilMs: endMs,
            why: 'x',
            reason: 'unspecified',
          },
        },
      ])
      await committed(store, change([], writes))
      const lists = [someTimeMs - 1, someTimeMs + 1].map((untilMs, part) => ({
        rollout: 'r1',
        part,
        nodes: [],
        untilMs,
      }))
      await committed(
        store,
        change(
          lists.map((list) => read('rollout-nodes', rolloutNodesKey(list), 0)),
          lists.map((value) => ({ put: 'rollout-nodes', value }) as const),
        ),
      )
      // L2: a denial is kept as long as the certificate it denies.
      assert.equal(await store.forget(someTimeMs), 3)
      assert.equal(await store.get('certificate', 'ca/a0'), null)
      assert.notEqual(await store.get('certificate', 'ca/a1'), null)
      assert.deepEqual((await store.denials()).map((denial) => denial.untilMs).sort(), ends.slice(1))
      assert.equal(await store.forget(someTimeMs), 0)
    })

    test('closing answers what was asked before, and refuses what comes after', async () => {
      const asked = Array.from({ length: 600 }, (_, index) => store.commit(newNode(`n${index}`)))
      const closed = store.close()
      await assert.rejects(store.commit(newNode('late')))
      assert((await Promise.all(asked)).every((outcome) => outcome !== 'lost-race'))
      await closed
      await store.close()
      store = await under.reopen()
      assert.equal((await store.countNodes()).registered, 600)
    })
  })
}
