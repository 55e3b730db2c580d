// The end of a control group, whatever is in it. Groups of version 2 are made without controllers: they end in the same way.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { endGroup } from '#platform/control-group-folder.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { findProgram } from '#platform/run-program.ts'
import { controlGroups } from '../peers/peer.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'

const groups = controlGroups()
const skip = groups === null && 'there are no control groups of version 2 to write to'

/** A program in a group of its own, whose folder is its first word and a file that it writes to its second. */
const started = async (t: Scope, script: string) => {
  const group = path.join(groups ?? '', `muster-test-${process.pid}-${path.basename(tempFolder(t))}`)
  fs.mkdirSync(group)
  const written = path.join(tempFolder(t), 'written')
  const entering = `echo $$ > "$1/cgroup.procs"; ${script}`
  const child = spawn('/bin/sh', ['-c', entering, 'sh', group, written], { stdio: 'ignore', detached: true })
  cleanup(t, async () => {
    if (fs.existsSync(path.join(group, 'cgroup.kill'))) fs.writeFileSync(path.join(group, 'cgroup.kill'), '1')
    child.kill('SIGKILL')
    await eventually('the group to be empty', () => endGroup([group]))
  })
  const lines = await eventually('it to run', () => {
    const text = fs.existsSync(written) ? fs.readFileSync(written, 'utf8') : ''
    return text.endsWith('\n') && text.trim().split('\n')
  })
  return { group, pids: lines.map(Number) }
}

test('a program that has gone into a group below its own ends with it', { skip }, async (t) => {
  const { group, pids } = await started(
    t,
    'mkdir "$1/below" && echo $$ > "$1/below/cgroup.procs"; echo $$ > "$2"; while :; do sleep 600; done',
  )
  assert.equal(await endGroup([group]), true)
  assert.equal(fs.existsSync(group), false)
  await eventually('it to end', () => pids.every((pid) => !stillRuns({ pid, birth: null })))
})

const isRoot = process.geteuid?.() === 0
const setpriv = findProgram('setpriv')

/** As a helper that has few of root's rights: it may not send a signal to the process of another user. */
const endedWithoutKill = (group: string): boolean => {
  const module = path.resolve(import.meta.dirname, '../../src/platform/control-group-folder.ts')
  const script = `import { endGroup } from '${module}'; process.exit((await endGroup(['${group}'])) ? 0 : 1)`
  const node = [process.execPath, '--input-type=module', '-e', script]
  return spawnSync(setpriv ?? '', ['--bounding-set=-kill', ...node]).status === 0
}

test(
  'a group is ended by who may not signal what is in it',
  { skip: skip || !isRoot || setpriv === null },
  async (t) => {
    const asNobody = 'setpriv --reuid=65534 --regid=65534 --clear-groups'
    const { group, pids } = await started(t, `echo $$ > "$2"; exec ${asNobody} sleep 600`)
    const [pid = 0] = pids
    await eventually('it to have another user', () => fs.statSync(`/proc/${pid}`).uid === 65534)
    assert.equal(endedWithoutKill(group), true)
    assert.equal(fs.existsSync(group), false)
  },
)
