// Which control groups are used on hosts of every kind, over folders that stand for what the kernel shows there. That a group holds what is
// in it is tried with those of this machine (test/faults/task-programs.test.ts).

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openControlGroups } from './control-groups.ts'

const limits = { memoryBytes: 64 << 20, mostProcesses: 16 }

/** The files of a group, by their names, with what is in them. */
type Files = Readonly<Record<string, string>>

const second = { 'cgroup.procs': '', 'cgroup.controllers': 'cpu memory pids\n', 'cgroup.subtree_control': '' }
const limitFiles = ['memory.max', 'memory.swap.max', 'memory.oom.group', 'pids.max', 'memory.events', 'cgroup.procs']
const firstFiles = ['memory.limit_in_bytes', 'memory.oom_control', 'pids.max', 'cgroup.procs']

type Host = {
  readonly groups: Readonly<Record<string, Files>>
  /** With ROOT for the folder of the test. */
  readonly mounts: readonly string[]
  readonly own: readonly string[]
  /** The files that a group has which is made. */
  readonly made: readonly string[]
}

const hostOf = (t: TestContext, host: Host) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-groups-'))
  t.after(() => fs.rmSync(root, { recursive: true, force: true }))
  const place = (name: string): string => path.join(root, name)
  const fill = (folder: string, files: Files): void => {
    fs.mkdirSync(folder, { recursive: true })
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
  }
  for (const [name, files] of Object.entries(host.groups)) fill(place(name), files)
  const groups = openControlGroups({
    mounts: host.mounts.join('\n').replaceAll('ROOT', root),
    own: host.own.join('\n'),
    makeFolder: (folder) => {
      fs.mkdirSync(folder)
      fill(folder, Object.fromEntries(host.made.map((name) => [name, ''])))
    },
  })
  return { groups, place, read: (name: string) => fs.readFileSync(place(name), 'utf8') }
}

const unified = '30 24 0:26 / ROOT rw,nosuid - cgroup2 cgroup2 rw,nsdelegate'
const firstMounts = ['memory', 'pids'].map((one) => `31 24 0:27 / ROOT/${one} rw - cgroup cgroup rw,${one}`)

test('with version 2 a group is made below that of this process, with the controllers turned on there', (t) => {
  const { groups, place, read } = hostOf(t, {
    groups: { '.': second, 'system.slice/helper.service': second },
    ...{ mounts: [unified], own: ['0::/system.slice/helper.service'], made: limitFiles },
  })
  assert.equal(groups?.version, 2)
  const group = groups.make('task', limits)
  const folder = 'system.slice/helper.service/task'
  assert.ok(group !== null)
  assert.deepEqual(group.entrances, [place(`${folder}/cgroup.procs`)])
  assert.equal(read('system.slice/helper.service/cgroup.subtree_control'), '+memory +pids')
  const written = ['memory.max', 'memory.swap.max', 'memory.oom.group', 'pids.max']
  assert.deepEqual(
    written.map((name) => read(`${folder}/${name}`)),
    ['67108864', '0', '1', '16'],
  )
  assert.equal(group.ranOutOfMemory(), false)
  fs.writeFileSync(place(`${folder}/memory.events`), 'low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\n')
  assert.equal(group.ranOutOfMemory(), true)
  assert.notEqual(groups.find('task'), null)
  assert.equal(groups.find('other'), null)
})

test('with version 2 the topmost group has it where that of this process gives its controllers to none', (t) => {
  // The kernel refuses that to a group with processes of its own. Without the file the write fails as well.
  const { 'cgroup.subtree_control': _none, ...busy } = second
  const { groups, place, read } = hostOf(t, {
    groups: { '.': second, 'user.slice': busy },
    ...{ mounts: [unified], own: ['0::/user.slice'], made: limitFiles },
  })
  assert.deepEqual(groups?.make('task', limits)?.entrances, [place('task/cgroup.procs')])
  assert.equal(read('task/pids.max'), '16')
  assert.equal(fs.existsSync(place('user.slice/task')), false)
})

test('where version 2 has no controllers, those of version 1 are used', (t) => {
  const { groups, place, read } = hostOf(t, {
    groups: {
      unified: { 'cgroup.procs': '', 'cgroup.controllers': '\n' },
      'memory/helper': { 'cgroup.procs': '' },
      pids: { 'cgroup.procs': '' },
    },
    mounts: [unified.replace('ROOT', 'ROOT/unified'), ...firstMounts],
    ...{ own: ['4:memory:/helper', '8:pids:/', '0::/'], made: firstFiles },
  })
  assert.equal(groups?.version, 1)
  const group = groups.make('task', limits)
  assert.ok(group !== null)
  assert.deepEqual(group.entrances, [place('memory/helper/task/cgroup.procs'), place('pids/task/cgroup.procs')])
  assert.deepEqual([read('memory/helper/task/memory.limit_in_bytes'), read('pids/task/pids.max')], ['67108864', '16'])
  fs.writeFileSync(place('memory/helper/task/memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n')
  assert.equal(group.ranOutOfMemory(), true)
})

test('in a container the group is looked for below the part of the tree that is mounted there', (t) => {
  const inside = { mounts: [unified.replace(' / ', ' /docker/abc ')], made: limitFiles }
  const seen = hostOf(t, { groups: { '.': second, own: second }, own: ['0::/docker/abc/own'], ...inside })
  assert.deepEqual(seen.groups?.make('task', limits)?.entrances, [seen.place('own/task/cgroup.procs')])
  const unseen = hostOf(t, { groups: { '.': second, own: second }, own: ['0::/docker/abcd/own'], ...inside })
  assert.equal(unseen.groups, null)
})

test('a host without both controllers has no groups, and one that takes no limits makes none', (t) => {
  assert.equal(hostOf(t, { groups: {}, mounts: [], own: [], made: [] }).groups, null)
  const memoryAlone = { ...second, 'cgroup.controllers': 'cpu memory\n' }
  const two = { mounts: [unified], own: ['0::/'] }
  assert.equal(hostOf(t, { ...two, groups: { '.': memoryAlone }, made: limitFiles }).groups, null)
  const one = { mounts: firstMounts, own: ['4:memory:/', '8:pids:/'], made: firstFiles }
  assert.equal(hostOf(t, { ...one, groups: { memory: { 'cgroup.procs': '' } } }).groups, null)
  const { groups } = hostOf(t, { ...two, groups: { '.': second }, made: ['cgroup.procs'] })
  assert.ok(groups !== null)
  assert.equal(groups.make('task', limits), null)
})
