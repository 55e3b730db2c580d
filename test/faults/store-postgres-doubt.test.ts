// The connection breaks around a COMMIT. Every answer that was given is true; a caller without one can ask again.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { withPeer } from '../peers/peer.ts'
import { startCommitProxy, type CommitFault, type CommitProxy } from '../process/commit-proxy.ts'
import { withSeed } from '../process/with-seed.ts'
import { newNode, note, putNode, read } from '../store/harness.ts'
import { assertGapless, committed, readAll, replicated, type Replicated } from '../store/postgres-setup.ts'

const long = process.env['MUSTER_LONG'] === '1'

type Behind = Replicated & { readonly store: Store; readonly proxy: CommitProxy; readonly witness: Store }

/** A store that reaches its database only through the proxy, and one beside it that has no trouble. */
const behindProxy = async (t: TestContext): Promise<Behind> => {
  const setup = await replicated(t)
  const port = setup.target.hosts[0]?.port ?? 0
  const proxy = await startCommitProxy(t, { host: '127.0.0.1', port })
  const store = await setup.open({}, { ...setup.target, hosts: [{ host: '127.0.0.1', port: proxy.port }] })
  return { ...setup, store, proxy, witness: await setup.open() }
}

const settledCount = async ({ sql }: Replicated): Promise<unknown> =>
  (await sql('SELECT sum(settled)::int AS settled FROM chain'))[0]?.['settled']

// Some of them wait for a deadline of the store or of the server, and may as well do so together.
describe('a COMMIT that is not answered', { concurrency: 4 }, () => {
  const faults: readonly CommitFault[] = ['reply-swallowed', 'cut-behind', 'cut-before', 'lost-on-the-way', 'overtaken']

  for (const fault of faults)
    test(`${fault}: the outcome is looked up, the look-up is itself committed, and nothing is written twice`, async (t) => {
      if (withPeer(t, 'postgres') === null) return
      const behind = await behindProxy(t)
      const { store, proxy, witness } = behind
      await committed(store, newNode('before'))
      proxy.nextCommit(fault)
      const outcomes = await Promise.all([
        store.commit(newNode('n1')),
        store.commit(newNode('n2')),
        store.commit({ reads: [read('node', 'before', 9)], writes: [putNode('before')], entries: [note()] }),
      ])
      assert.equal(proxy.struck(), 1)
      assert.deepEqual(
        outcomes.map((outcome) => outcome === 'lost-race'),
        [false, false, true],
      )
      assert.notEqual(await settledCount(behind), 0, 'nobody was answered before a synchronous write')
      await committed(store, newNode('after'))
      const entries = await readAll(witness)
      assert.deepEqual(
        entries.map(({ entry }) => entry.node),
        ['before', 'n1', 'n2', 'after'],
      )
      assertGapless(entries)
      const [first] = outcomes
      assert(first !== undefined && first !== 'lost-race')
      assert.equal(entries[1]?.hash, first.entries[0]?.hash, 'what was answered is what is there')
      assert.equal((await witness.journal.verify()).kind, 'intact')
    })

  for (const fault of faults)
    test(`${fault}, of a chain that has just begun`, async (t) => {
      if (withPeer(t, 'postgres') === null) return
      const behind = await behindProxy(t)
      const { store, proxy, witness } = behind
      proxy.nextCommit(fault)
      await committed(store, newNode('n1'))
      await committed(store, newNode('n2'))
      const entries = await readAll(witness)
      assert.deepEqual(
        entries.map(({ entry }) => [entry.node, entry.sequence]),
        [
          ['n1', 1],
          ['n2', 2],
        ],
      )
      assert.equal((await witness.journal.verify()).kind, 'intact')
    })

  test('without a connection it is not known, which is said, and it is settled before anything else is written', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const behind = await behindProxy(t)
    const { store, proxy, witness } = behind
    await committed(store, newNode('before'))
    proxy.nextCommit('cut-behind', 'andSilence')
    await assert.rejects(
      store.commit(newNode('n1')),
      (error) => error instanceof StoreFault && /not known/.test(error.message),
    )
    proxy.pass()
    assert.equal(await store.commit(newNode('n1')), 'lost-race', 'to repeat it is safe')
    await committed(store, newNode('n2'))
    assert.deepEqual(
      (await readAll(witness)).map(({ entry }) => entry.node),
      ['before', 'n1', 'n2'],
    )
    assert.equal((await witness.journal.verify()).kind, 'intact')
  })

  test('any of these, again and again under load: what was acknowledged is there, once', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { store, proxy, witness } = await behindProxy(t)
    await withSeed(async (random) => {
      const acknowledged: string[] = []
      const inDoubt = new Set<string>()
      let going = true
      const lanes = Array.from({ length: 8 }, async (_, lane) => {
        for (let at = 0; going; at++) {
          const id = `n${lane}-${at}`
          try {
            assert.notEqual(await store.commit(newNode(id)), 'lost-race')
            acknowledged.push(id)
          } catch (error) {
            assert(error instanceof StoreFault, String(error))
            inDoubt.add(id)
          }
        }
      })
      const quick = faults.filter((fault) => fault !== 'reply-swallowed' && fault !== 'lost-on-the-way')
      for (let round = 0; round < (long ? 100 : 6); round++) {
        const before = proxy.struck()
        proxy.nextCommit(quick[Math.floor(random.unit() * quick.length)] as CommitFault)
        while (proxy.struck() === before) await committed(witness, newNode(`w-${round}-${random.unit()}`))
      }
      going = false
      await Promise.all(lanes)
      const entries = await readAll(witness)
      assertGapless(entries)
      const nodes = entries.map(({ entry }) => entry.node ?? '').filter((node) => node.startsWith('n'))
      assert.equal(new Set(nodes).size, nodes.length, 'nothing is there twice')
      for (const id of acknowledged) assert(nodes.includes(id), `${id} was acknowledged`)
      for (const id of nodes) assert(acknowledged.includes(id) || inDoubt.has(id), `${id} came from nowhere`)
    })
    assert.equal((await witness.journal.verify()).kind, 'intact')
  })
})
