import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import {
  placingHost as host,
  placingHostIn as hostIn,
  reloadedOutput as reloaded,
} from '../../../test/fakes/placing-host.ts'
import { outputOf } from '../../../test/fakes/programs-authority.ts'
import { eventually } from '../../../test/process/eventually.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'

const day = 86_400_000

test('nothing is written before there is a list for every authority above the leaf', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  assert.deepEqual(await on.look(), [])
  on.leaf(web)
  assert.deepEqual(await on.look(), [])
  on.fetch(1)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
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
  assert.deepEqual(await on.look(), ['publish /outputs/web'])
  on.authority.revoked = [{ serial: 'beef', atMs: Date.now(), reason: 'unspecified' }]
  on.fetch(3)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
  on.leaf(web)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
  const lasting = reloaded({ lifetime_ms: 10 * day })
  on.outputs.now = [lasting]
  on.leaf(lasting)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
  on.advance(2 * day)
  assert.deepEqual(await on.look(), ['reload nginx'], 'the lists of three days are past their half')
  assert.deepEqual(await on.look(), [])
})

test('files that are replaced while a program may still read after its reload are read again', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
  on.advance(1_000)
  on.fetch(2)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
  on.advance(10_000)
  on.fetch(3)
  assert.deepEqual(await on.look(), ['publish /outputs/web'])
})

test('outputs that share a reload are read by one', async (t) => {
  const all = [reloaded(), reloaded({ name: 'api' })]
  const on = host(t, ...all)
  for (const output of all) on.leaf(output)
  on.fetch(1)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'publish /outputs/api', 'reload nginx'])
})

test('what fails is said, tried again later, and forgotten when it works', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  on.fails.publish = true
  assert.deepEqual(await on.look(), ['publish /outputs/web failed'])
  assert.equal(on.stateOf(web).failure, 'publish does not work: repair it')
  assert.equal(on.stateOf(web).serial, null)
  assert.deepEqual(await on.look(), [])
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['publish /outputs/web failed'])
  on.fails.publish = false
  on.fails.reload = true
  on.advance(300_000)
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx failed'])
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
  assert.deepEqual(await on.look(), ['remove /outputs/web failed'])
  assert.deepEqual(on.leaves.current().leaves, [])
  assert.deepEqual(
    on.placement.leftovers([]).map(({ name, place, failure }) => [name, place, failure]),
    [['web', '/outputs/web', 'remove does not work: repair it']],
  )
  on.fails.remove = false
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['remove /outputs/web'])
  assert.deepEqual([on.placement.leftovers([]), on.lists.current().placed], [[], []])
})

test('an output that this host has no place for says so, and its leaf waits for one', async (t) => {
  const lost = outputOf({ name: 'nowhere' })
  const on = host(t, lost)
  on.leaf(lost)
  on.fetch(1)
  assert.deepEqual(await on.look(), [])
  assert.match(on.stateOf(lost).failure ?? '', /^there is no place$/)
})

test('an output that is to be elsewhere is put there first, is read there, and is removed where it was', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  await on.look()
  on.publishing.in = '/elsewhere'
  on.fails.publish = true
  assert.deepEqual(await on.look(), ['publish /elsewhere/web failed'])
  assert.deepEqual(await on.look(), [], 'what was there before stays')
  on.fails.publish = false
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['publish /elsewhere/web', 'reload nginx'])
  on.publishing.left = true
  assert.deepEqual(await on.look(), ['remove /outputs/web'])
  assert.equal(on.stateOf(web).failure, '/outputs/web is left there: remove it by hand')
  on.publishing.left = false
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['remove /outputs/web'])
  assert.equal(on.stateOf(web).failure, null)
  assert.deepEqual(on.lists.current().placed, [
    { output: 'web', by: 'helper', directory: '/elsewhere', withdrawn: false },
  ])
})

test('the next agent removes what the one before has put elsewhere, once it has put the output in its place', async (t) => {
  const web = outputOf()
  const folder = tempFolder(t)
  const before = hostIn(folder, web)
  before.leaf(web)
  before.fetch(1)
  await before.look()
  const after = hostIn(folder, web)
  after.publishing.in = '/elsewhere'
  assert.deepEqual(await after.look(), ['publish /elsewhere/web'])
  assert.deepEqual(await after.look(), ['remove /outputs/web'])
})

test('an output that has no place any more says where its files of before are', async (t) => {
  const [web, lost] = [outputOf(), outputOf({ name: 'nowhere' })]
  const on = host(t, web)
  on.lists.keep({ placed: [{ output: 'nowhere', by: 'helper', directory: '/etc/old', withdrawn: false }] })
  on.outputs.now = [lost]
  assert.deepEqual(await on.look(), [])
  assert.equal(on.stateOf(lost).failure, 'Its files of before stay in /etc/old. there is no place')
})

test('nothing is put where the next agent would not know of it, and what is there goes on while the disk is full', async (t) => {
  const web = outputOf()
  const folder = tempFolder(t)
  const on = hostIn(folder, web)
  on.leaf(web)
  on.fetch(1)
  const inTheWay = path.join(folder, 'program-lists.json.new')
  fs.mkdirSync(inTheWay)
  for (let times = 0; times < 2; times++) {
    assert.deepEqual(await on.look(), [])
    assert.match(on.stateOf(web).failure ?? '', /^Where its files are cannot be noted in the state folder: /)
    on.advance(300_000)
  }
  fs.rmdirSync(inTheWay)
  assert.deepEqual(await on.look(), ['publish /outputs/web'])
  fs.mkdirSync(inTheWay)
  on.leaf(web)
  assert.deepEqual(await on.look(), ['publish /outputs/web'])
})

test('no key is written below a mount point while the disk that was mounted there is not', async (t) => {
  const web = outputOf()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  on.publishing.by = 'agent'
  const noted = { output: 'web', by: 'agent' as const, directory: '/outputs', withdrawn: false }
  on.lists.keep({ placed: [{ ...noted, mount: '/outputs' }] })
  assert.deepEqual(await on.look(), [])
  assert.match(
    on.stateOf(web).failure ?? '',
    /^No key is written in \/outputs: \/outputs is not mounted\. Mount it, or use/,
  )
  // Noted without it, as by a search.
  on.lists.keep({ placed: [noted] })
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['publish /outputs/web'])
  assert.deepEqual(on.lists.current().placed, [{ ...noted, mount: '/' }])
})

test('what was withdrawn is removed as soon as that works, also by the next agent, and is not put there before', async (t) => {
  const web = outputOf()
  const folder = tempFolder(t)
  const before = hostIn(folder, web)
  before.leaf(web)
  before.fetch(1)
  await before.look()
  before.fails.remove = true
  assert.deepEqual(await before.withdraw(), ['remove /outputs/web failed'])
  assert.ok(before.placement.isWithdrawing())
  assert.equal(before.stateOf(web).failure, 'remove does not work: repair it')

  // The node was admitted anew, with the same output, before its agent could remove the files of its former identity.
  const after = hostIn(folder, web)
  after.leaf(web)
  after.fetch(2)
  after.fails.remove = true
  assert.deepEqual(await after.look(), ['remove /outputs/web failed'])
  after.fails.remove = false
  after.advance(10_000)
  assert.deepEqual(await after.look(), ['remove /outputs/web', 'publish /outputs/web'])
  assert.ok(!after.placement.isWithdrawing())
})

test('what only the owner of the host can remove is not waited for', async (t) => {
  const web = outputOf()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  await on.look()
  on.publishing.left = true
  await on.withdraw()
  assert.ok(!on.placement.isWithdrawing())
  assert.equal(on.lists.current().placed.length, 1)
})

test('nothing waits for a slow reload to be taken away, and nothing is put in place while a program may be reading', async (t) => {
  const [web, api] = [reloaded(), outputOf({ name: 'api' })]
  const on = host(t, web, api)
  for (const output of [web, api]) on.leaf(output)
  on.fetch(1)
  const { promise, resolve } = Promise.withResolvers<void>()
  on.slow.reload = promise
  on.placement.look()
  await eventually('the reload to be under way', () => on.done.includes('reload nginx'))
  on.done.splice(0)
  on.outputs.now = [web]
  on.leaf(web)
  on.placement.look()
  await eventually('the output to be removed', () => on.done.includes('remove /outputs/api'))
  assert.deepEqual(await on.withdraw(), ['remove /outputs/api', 'remove /outputs/web'])
  resolve()
  on.slow.reload = Promise.resolve()
  await on.placement.settled()
  assert.deepEqual(on.lists.current().reloaded, {}, 'a program has loaded nothing of what is gone')
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
})

test('what the disk has not confirmed is in place, is read by its program, and is written again', async (t) => {
  const web = reloaded()
  const on = host(t, web)
  on.leaf(web)
  on.fetch(1)
  on.publishing.replaced = 'in-doubt'
  assert.deepEqual(await on.look(), ['publish /outputs/web', 'reload nginx'])
  assert.equal(on.stateOf(web).serial, on.leaves.current().leaves[0]?.serial)
  assert.equal(on.stateOf(web).failure, '/outputs/web is in place, but its disk has not confirmed that')
  on.publishing.replaced = 'durable'
  assert.deepEqual(await on.look(), [])
  on.advance(10_000)
  assert.deepEqual(await on.look(), ['publish /outputs/web'])
  assert.equal(on.stateOf(web).failure, null)
})
