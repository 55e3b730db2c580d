// Programs with limits as units of systemd, where the client that waits for one is killed. Two programs in the place of systemd's own
// do as those are documented to.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { controllersOfHost } from '#platform/control-groups.ts'
import { openLimiter } from '#platform/limited-process.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** The program is no child of the client's group: it lives on when the client is killed. */
const systemdRun = `#!/bin/sh
here=$(dirname "$0")
for word; do shift; [ "$word" = -- ] && break; done
setsid "$@" &
echo $! > "$here/unit"
echo $$ > "$here/client"
wait $!
code=$?
rm -f "$here/unit"
exit $code
`
const systemctl = `#!/bin/sh
here=$(dirname "$0")
pid=$(cat "$here/unit" 2>/dev/null)
case "$*" in
  *show*) if [ -n "$pid" ]; then echo active; else echo inactive; fi;;
  *stop*) if [ -n "$pid" ]; then kill -s KILL -- "-$pid"; rm -f "$here/unit"; else echo 'not loaded' >&2; exit 5; fi;;
  *) echo 'not loaded' >&2; exit 1;;
esac
`

const asUnits = (t: TestContext, programs: Record<string, string> = { 'systemd-run': systemdRun, systemctl }) => {
  const folder = tempFolder(t)
  for (const [name, text] of Object.entries(programs)) fs.writeFileSync(path.join(folder, name), text, { mode: 0o755 })
  const before = process.env['PATH']
  process.env['PATH'] = `${folder}:${before}`
  cleanup(t, () => void (process.env['PATH'] = before))
  const pidIn = (name: string): number | null => {
    const file = path.join(folder, name)
    return fs.existsSync(file) ? Number(fs.readFileSync(file, 'utf8')) || null : null
  }
  return { pidIn }
}

/** The programs above limit nothing: the kernel of this machine need not have them. */
const controllers = ['memory', 'pids']

const running = (script: string) => {
  const program = openLimiter('unit', controllers)?.prepare('muster-task-test', {
    memoryBytes: 64 << 20,
    mostProcesses: 16,
  })
  assert.ok(program !== undefined && program !== null)
  const command = { command: ['/bin/sh', '-c', script], cwd: '/', user: null, input: '' }
  return program.run({ ...command, withinMs: 600_000, keptOutput: 100 }, new AbortController().signal)
}

test('a program whose client of systemd is killed is ended, and how it ended is not known', async (t) => {
  const { pidIn } = asUnits(t)
  const run = running('exec sleep 30')
  const client = await eventually('the client to wait', () => pidIn('client'))
  const pid = await eventually('the program to run', () => pidIn('unit'))
  process.kill(client, 'SIGKILL')
  const { code, isLost } = await run
  assert.deepEqual([code, isLost], [null, true])
  await eventually('the program to end', () => !stillRuns({ pid, birth: null }))
})

test('a client that gives up its wait with an exit code does not speak for the program', async (t) => {
  const giving = systemdRun.replace('wait $!\ncode=$?\nrm -f "$here/unit"', 'code=1')
  const { pidIn } = asUnits(t, { 'systemd-run': giving, systemctl })
  const ran = await running('exec sleep 30')
  assert.deepEqual([ran.code, ran.isLost], [1, true])
  assert.equal(pidIn('unit'), null)
})

test('a program that ends by itself has its own exit code', async (t) => {
  asUnits(t)
  const { code, isLost, output } = await running('echo hello; exit 3')
  assert.deepEqual([code, isLost, output.head], [3, false, 'hello\n'])
})

test('a host whose kernel lacks a controller limits nothing by units, which systemd would start all the same', (t) => {
  asUnits(t)
  assert.equal(openLimiter('unit', ['memory']), null)
  assert.equal(openLimiter('unit', ['cpu', 'pids']), null)
  assert.equal(openLimiter('unit', ['memory', 'pids'])?.by, 'unit')
})

test('a host has the controllers of both versions of control groups', () => {
  const mountinfo = `30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
31 24 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 24 0:28 / /tmp rw - tmpfs tmpfs rw,memory`
  const asked: string[] = []
  const found = controllersOfHost(mountinfo, (file) => {
    asked.push(file)
    return 'cpu io\n'
  })
  assert.deepEqual([found, asked], [['cpu', 'io', 'rw', 'pids'], ['/sys/fs/cgroup/cgroup.controllers']])
})
