// What a helper that was killed has left of its tasks, where the disk or the system fails while the next helper takes it up.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openTasks, type Tasks } from '#agent/helper/tasks/open-tasks.ts'
import type { TasksToml } from '#agent/helper/tasks/tasks-toml.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { testTrust } from '../fakes/helped-host.ts'
import { thisNode } from '../fakes/host-of-programs.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { hourMs, taskAuthority, taskId } from '../fakes/signed-tasks.ts'
import { refusedAs, taskedHost } from '../fakes/tasked-host.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('a helper that could not take its tasks up does so when it can, without a restart', async (t) => {
  const tasked = taskedHost(t)
  await tasked.learn()
  await tasked.host.close()
  const folder = path.join(tasked.host.folder, 'state', 'tasks')
  // Its age cannot be read, as on a disk that fails.
  const unreadable = path.join(folder, `${taskId(601)}.json`)
  fs.symlinkSync(unreadable, unreadable)
  const again = tasked.host.again()
  for (let times = 0; times < 2; times++) {
    const said = await again.ask('task.look', {})
    assert.ok('code' in said && said.code === 'NOT_DONE', JSON.stringify(said))
    assert.match(said.message, /ELOOP/)
  }
  fs.rmSync(unreadable)
  assert.deepEqual(await again.ask('task.look', {}), { answer: { number: 7, epoch: 3, tasks: [] } })
  refusedAs(await tasked.host.again().ask('task.look', {}), 'HELPER_BUSY')
})

/** In the place of systemd's own, which does not stop the units that are named in `stuck`: as where its bus does not answer. */
const systemctl = `#!/bin/sh
for unit; do :; done
if echo "$unit" | grep -qF -f "$(dirname "$0")/stuck"; then echo 'Failed to stop: Connection timed out' >&2; exit 1; fi
echo "Unit $unit not loaded." >&2
exit 5
`

const withSystemctl = (t: TestContext): { stuck(units: readonly string[]): void } => {
  const folder = tempFolder(t)
  const stuck = (units: readonly string[]): void => fs.writeFileSync(path.join(folder, 'stuck'), units.join('\n'))
  stuck([])
  fs.writeFileSync(path.join(folder, 'systemctl'), systemctl, { mode: 0o755 })
  fs.writeFileSync(path.join(folder, 'systemd-run'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const before = process.env['PATH']
  process.env['PATH'] = `${folder}:${before}`
  cleanup(t, () => void (process.env['PATH'] = before))
  return { stuck }
}

test('a task whose program cannot be ended keeps nothing else waiting, and is taken up when it can', async (t) => {
  if (withPeer(t, 'limits') === null) return
  const { stuck } = withSystemctl(t)
  const clock = manualClock(Date.UTC(2027, 0, 1))
  const folder = tempFolder(t)
  const statementKeys = path.join(folder, 'keys.pem')
  fs.writeFileSync(statementKeys, taskAuthority(clock.nowMs()).pem, { mode: 0o644 })
  const state = path.join(folder, 'tasks')
  fs.mkdirSync(state, { mode: 0o700 })
  for (const id of [taskId(611), taskId(612)]) {
    const record = {
      ...{
        version: 1,
        id,
        type: 'run',
        parameters: null,
        result: null,
        forgotten: false,
        boot: 'first',
        attempts: 1,
      },
      ...{ begun_ms: clock.nowMs(), expires_ms: clock.nowMs() + hourMs, key: 'k', by: { pid: 1, birth: 'gone/1' } },
    }
    fs.writeFileSync(path.join(state, `${id}.json`), JSON.stringify(record), { mode: 0o600 })
  }
  const toml: TasksToml = {
    ...{ statementKeys, state, typesFolder: path.join(folder, 'types'), allow: ['run'] },
    ...{ run: new Map(), services: new Map(), files: [], cleanup: new Map() },
  }
  const parts = {
    ...{ clock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust, agentUser: null },
    ...{ runs: 'unit' as const, mark: 'test', reboot: null },
  }
  const opened = async (): Promise<Tasks> => {
    const tasks = await openTasks(state, toml, thisNode, parts)
    return 'fault' in tasks ? assert.fail(tasks.why) : tasks
  }
  const statesIn = (tasks: Tasks): readonly string[] => {
    const held = tasks.look(toml, thisNode)
    return 'fault' in held
      ? assert.fail(held.why)
      : held.tasks.map(({ state: now, result }) => `${now} ${result?.code ?? ''}`)
  }

  stuck([taskId(611)])
  const first = await opened()
  cleanup(t, () => first.close())
  assert.deepEqual(statesIn(first), ['running ', 'ended INTERRUPTED'])
  await first.close()

  const second = await opened()
  cleanup(t, () => second.close())
  assert.deepEqual(statesIn(second), ['running ', 'ended INTERRUPTED'])
  stuck([])
  const after = await eventually('it to be taken up', () => {
    const states = statesIn(second)
    return states.includes('running ') ? null : states
  })
  assert.deepEqual(after, ['ended INTERRUPTED', 'ended INTERRUPTED'])
})
