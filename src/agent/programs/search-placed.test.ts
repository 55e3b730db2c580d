import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { placingHostIn as hostIn, reloadedOutput as reloaded } from '../../../test/fakes/placing-host.ts'
import { outputOf } from '../../../test/fakes/programs-authority.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'

test('where the ledger is damaged what lies in the places of the host is looked for, and removed where it is not wanted', async (t) => {
  const [web, folder] = [outputOf(), tempFolder(t)]
  const file = path.join(folder, 'program-lists.json')
  fs.writeFileSync(file, '{"version": 1, "pla')
  const before = hostIn(folder, web)
  before.leaf(web)
  before.fetch(1)
  before.found.now = null
  assert.deepEqual(await before.look(), ['publish /outputs/web'])
  // The helper was away until that agent ended.
  const after = hostIn(folder, web)
  const foundIn = (output: string) => ({ output, by: 'helper' as const, directory: '/outputs', serial: null })
  after.found.now = ['web', 'old'].map(foundIn)
  assert.deepEqual(await after.look(), ['remove /outputs/old', 'publish /outputs/web'])
  after.found.now = [foundIn('of somebody else')]
  after.advance(300_000)
  assert.deepEqual(await after.look(), [])
})

test('an output that is found stays if the agent has its leaf; any other may be one that was withdrawn', async (t) => {
  const [web, folder] = [reloaded(), tempFolder(t)]
  const on = hostIn(folder, web)
  on.leaf(web)
  const { serial = '' } = on.leaves.current().leaves[0] ?? {}
  fs.writeFileSync(path.join(folder, 'program-lists.json'), 'no ledger')
  const after = hostIn(folder, web)
  after.outputs.now = null
  const found = { output: 'web', by: 'helper' as const, directory: '/outputs' }
  after.found.now = null
  assert.deepEqual(await after.look(), [])
  assert.ok(after.placement.isWithdrawing(), 'it is not known yet what there is')
  after.found.now = [
    { ...found, serial },
    { ...found, output: 'api', serial },
  ]
  assert.deepEqual(await after.look(), ['remove /outputs/api'])
  assert.deepEqual(after.lists.current().placed, [{ ...found, withdrawn: false }])
  assert.ok(!after.placement.isWithdrawing())
})

test('a ledger that the disk does not give now is not damaged: it stays as it is, and nothing is placed before it was read', async (t) => {
  const [web, folder] = [outputOf(), tempFolder(t)]
  const [file, aside] = [path.join(folder, 'program-lists.json'), path.join(folder, 'aside')]
  const before = hostIn(folder, web)
  before.leaf(web)
  before.fetch(1)
  await before.look()
  fs.renameSync(file, aside)
  // Reading it fails, for every user.
  fs.mkdirSync(file)
  const after = hostIn(folder, web)
  after.leaf(web)
  after.fetch(2)
  after.found.now = [{ output: 'old', by: 'helper', directory: '/outputs', serial: null }]
  assert.deepEqual(await after.look(), [])
  assert.match(after.stateOf(web).failure ?? '', /cannot be noted in the state folder: .*cannot be read: EISDIR/)
  assert.deepEqual(await after.withdraw(), [])
  assert.ok(after.placement.isWithdrawing())
  fs.rmdirSync(file)
  fs.renameSync(aside, file)
  assert.deepEqual(after.lists.retry(), { persisted: true })
  assert.equal(after.lists.lists()[0]?.number, 2)
  after.outputs.now = null
  assert.deepEqual(await after.look(), ['remove /outputs/web'], 'it was withdrawn meanwhile')
  assert.ok(!after.placement.isWithdrawing())
})
