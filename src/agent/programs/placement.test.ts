import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { outputOf, programsAuthority } from '../../../test/fakes/programs-authority.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import { leafFrom, listsFrom } from './check-answer.ts'
import { openLeafStore, withLeaf } from './leaf-store.ts'
import { openListStore } from './list-store.ts'
import { openPlacement } from './placement.ts'
import { termsOf } from './wanted-outputs.ts'

const day = 86_400_000

/** A host whose publisher does as the test says, with a clock that only the test moves. */
const host = (t: TestContext, ...wanted: ConfigOutput[]) => {
  const startMs = Date.now()
  let aheadMs = 0
  const clock = { nowMs: () => startMs + aheadMs, monotonicMs: () => aheadMs }
  const authority = programsAuthority(startMs)
  const folder = tempFolder(t)
  const leaves = openLeafStore(
    folder,
    () => true,
    (act) => act(),
  )
  const lists = openListStore(folder)
  const done: string[] = []
  const fails = { publish: false, reload: false, remove: false }
  const outputs = { now: wanted as readonly ConfigOutput[] | null }
  const act = (what: keyof typeof fails, name: string): Promise<void> => {
    done.push(`${what} ${name}${fails[what] ? ' failed' : ''}`)
    return fails[what] ? Promise.reject(new Error(`${what} does not work: repair it`)) : Promise.resolve()
  }
  const placement = openPlacement(
    { clock, timers: systemTimers, random: { ...systemRandom, unit: () => 0.5 }, log: silentLog },
    {
      leaves,
      lists,
      record: { changed: () => {} },
      outputs: () => outputs.now,
      publisher: {
        publish: ({ output }) => act('publish', output.name),
        reload: (name) => act('reload', name),
        remove: (name) => act('remove', name),
        placeOf: ({ name }) => (name === 'nowhere' ? null : `/outputs/${name}`),
      },
    },
    () => {},
  )
  const it = {
    authority,
    leaves,
    lists,
    fails,
    outputs,
    advance: (ms: number): void => void (aheadMs += ms),
    stateOf: (output: ConfigOutput) => placement.stateOf(output, null),
    leaf: (output: ConfigOutput): void => {
      const key = generateKey(output.key_type)
      const request = { ...termsOf(output, 1), keyPem: key.pkcs8Pem(), csrPem: makeCsr(key, output.name) }
      const of = { domain: 'example.test', node: 'gpu-001', output: output.name }
      const given = leafFrom(request, output, authority.leafFor(request.csrPem, output), of, clock.nowMs())
      if (given.kind === 'unusable') throw new Error(given.why)
      leaves.keep(withLeaf(leaves.current(), given.leaf))
    },
    fetch: (number: number): void => {
      const received = listsFrom(lists.current(), authority.lists(number), [], clock.nowMs())
      if (received.kind === 'unusable') throw new Error(received.why)
      lists.keep(received.ledger)
    },
    /** What was done since the last look. */
    look: async (): Promise<string[]> => {
      placement.look()
      await placement.settled()
      return done.splice(0)
    },
    removeAll: () => placement.removeAll(),
  }
  return it
}

const reloaded = (change: Partial<ConfigOutput> = {}): ConfigOutput => {
  const output = outputOf(change)
  return { ...output, files: { ...output.files, reload: 'nginx' } }
}

test('nothing is written before there is a list for every authority above the leaf', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  assert.deepEqual(await on.look(), [])
  on.leaf(web)
  assert.deepEqual(await on.look(), [])
  on.fetch(1)
  assert.deepEqual(await on.look(), ['publish web', 'reload nginx'])
  assert.deepEqual(await on.look(), [])
  assert.equal(on.stateOf(web).failure, null)
})

test('a program reads its files again for a new leaf, for a revocation and for lists that are half through, and for no other list', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  await on.look()
  on.advance(10_000)
  on.fetch(2)
  assert.deepEqual(await on.look(), ['publish web'])
  on.authority.revoked = [{ serial: 'beef', atMs: Date.now(), reason: 'unspecified' }]
  on.fetch(3)
  assert.deepEqual(await on.look(), ['publish web', 'reload nginx'])
  on.leaf(web)
  assert.deepEqual(await on.look(), ['publish web', 'reload nginx'])
  const lasting = reloaded({ lifetime_ms: 10 * day })
  on.outputs.now = [lasting]
  on.leaf(lasting)
  assert.deepEqual(await on.look(), ['publish web', 'reload nginx'])
  on.advance(2 * day)
  assert.deepEqual(await on.look(), ['reload nginx'], 'the lists of three days are past their half')
  assert.deepEqual(await on.look(), [])
})

test('files that are replaced while a program may still read after its reload are read again', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  assert.deepEqual(await on.look(), ['publish web', 'reload nginx'])
  on.advance(1_000)
  on.fetch(2)
  assert.deepEqual(await on.look(), ['publish web', 'reload nginx'])
  on.advance(10_000)
  on.fetch(3)
  assert.deepEqual(await on.look(), ['publish web'])
})

test('outputs that share a reload are read by one', async (t) => {
  const all = [reloaded(), reloaded({ name: 'api' })]
  const on = host(t, ...all)
  for (const output of all) on.leaf(output)
  on.fetch(1)
  assert.deepEqual(await on.look(), ['publish web', 'publish api', 'reload nginx'])
})

test('what fails is said, tried again later, and forgotten when it works', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  on.fails.publish = true
  assert.deepEqual(await on.look(), ['publish web failed'])
  assert.equal(on.stateOf(web).failure, 'publish does not work: repair it')
  assert.equal(on.stateOf(web).serial, null)
  assert.deepEqual(await on.look(), [])
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['publish web failed'])
  on.fails.publish = false
  on.fails.reload = true
  on.advance(300_000)
  assert.deepEqual(await on.look(), ['publish web', 'reload nginx failed'])
  assert.equal(on.stateOf(web).failure, 'reload does not work: repair it')
  assert.equal(on.stateOf(web).serial, on.leaves.current().leaves[0]?.serial)
  on.fails.reload = false
  on.advance(300_000)
  assert.deepEqual(await on.look(), ['reload nginx'])
  assert.equal(on.stateOf(web).failure, null)
})

test('what is wanted no more is removed with its key; while it is not known what is wanted, nothing is', async (t) => {
  const web = outputOf()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  await on.look()
  on.outputs.now = null
  assert.deepEqual(await on.look(), [])
  on.outputs.now = []
  on.fails.remove = true
  assert.deepEqual(await on.look(), ['remove web failed'])
  assert.equal(on.leaves.current().leaves.length, 1)
  on.fails.remove = false
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['remove web'])
  assert.deepEqual([on.leaves.current().leaves, on.lists.current().placed], [[], []])
})

test('an output that this host has no place for says so, and its leaf waits for one', async (t) => {
  const lost = outputOf({ name: 'nowhere' })
  const on = host(t, lost)
  on.leaf(lost)
  on.fetch(1)
  assert.deepEqual(await on.look(), [])
  assert.match(on.stateOf(lost).failure ?? '', /no place for it: start the agent with --publish DIR/)
})
