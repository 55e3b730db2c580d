import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { tempFolder } from '../../../../test/process/temp-folder.ts'
import { openWitnessFiles } from './witness-files.ts'

const domain = 'lab.example'
const hash = 'ab'.repeat(32)
const head = (chain: string, sequence: number) => ({ chain, sequence, hash })
const doubt = (lineage: number) =>
  ({ domain, why: 'missing', lineage, chain: 'a', sequence: 9, hash, ours: 3 }) as const

test('R1: several processes in one data folder keep heads of their own, and a start reads the newest of all', (t) => {
  const folder = tempFolder(t)
  const open = (replica: number | null) => openWitnessFiles(folder, silentLog, replica)
  open(null).keepHeads({ domain, root: null, lineage: 0, heads: [head('a', 7)] })
  open(1).keepHeads({ domain, root: null, lineage: 0, heads: [head('a', 9), head('b', 1)] })
  open(2).keepHeads({ domain, root: null, lineage: 0, heads: [head('a', 8), head('b', 2)] })
  assert.deepEqual(fs.readdirSync(folder).toSorted(), [
    'journal-heads.1.json',
    'journal-heads.2.json',
    'journal-heads.json',
  ])
  for (const replica of [null, 1, 2, 3])
    assert.deepEqual(open(replica).heads(), { domain, root: null, lineage: 0, heads: [head('a', 9), head('b', 2)] })
  open(2).keepHeads({ domain, root: null, lineage: 1, heads: [head('a', 4)] })
  assert.deepEqual(
    open(1).heads(),
    { domain, root: null, lineage: 1, heads: [head('a', 4)] },
    'what was confirmed away is not held',
  )
  fs.writeFileSync(path.join(folder, 'journal-heads.2.json'), '{')
  assert.equal(open(2).heads()?.lineage, 0, 'a damaged file does not hide the others')
})

test('R1: a doubt that any process of the folder has kept is read by all, and dropped for all', (t) => {
  const folder = tempFolder(t)
  const open = (replica: number | null) => openWitnessFiles(folder, silentLog, replica)
  assert.equal(open(1).doubt(), null)
  open(2).keepDoubt(doubt(1))
  open(1).keepDoubt(doubt(0))
  for (const replica of [null, 1, 2]) assert.deepEqual(open(replica).doubt(), doubt(1))
  open(3).dropDoubt()
  assert.deepEqual(fs.readdirSync(folder), [])
})
