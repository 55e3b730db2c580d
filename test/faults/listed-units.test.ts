// What agent.toml lists, run as units of systemd. None runs where tests do: two programs in its place note what they are asked, and
// do as systemd's own are documented to.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openVerbs } from '#agent/helper/perform-verb.ts'
import type { RequestOf, Verb } from '#agent/helper/verbs.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { hostOfPrograms } from '../fakes/host-of-programs.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** Runs what it waits for, and notes the rest as units. */
const systemdRun = `#!/bin/sh
here=$(dirname "$0")
echo "systemd-run $*" >> "$here/asked"
for word; do case "$word" in
  --unit=*) unit="\${word#--unit=}";;
  --description=*) description="\${word#--description=}";;
  --wait) wait=yes;;
  --) shift; break;;
esac; shift; done
[ "$wait" = yes ] && exec "$@"
printf 'Id=%s\\nDescription=%s\\nLoadState=loaded\\nActiveState=active\\nNRestarts=2\\nMainPID=4711\\n' \\
  "$unit" "$description" > "$here/units/$unit"
`
const systemctl = `#!/bin/sh
here=$(dirname "$0")
echo "systemctl $*" >> "$here/asked"
cd "$here/units" || exit 1
for word; do case "$word" in
  --*) ;;
  show|stop|reset-failed) verb="$word";;
  *) case "$verb" in
    show) for unit in $word; do [ -e "$unit" ] && { cat "$unit"; echo; }; done; true;;
    stop) if [ -e "$word" ]; then rm "$word"; else echo "Unit $word not loaded." >&2; exit 5; fi;;
    *) echo "Unit $word not loaded." >&2; exit 1;;
  esac;;
esac; done
`
const journalctl = `#!/bin/sh
case "$*" in *--dmesg*) cat "$(dirname "$0")/kernel-log";; *) echo 'it listens';; esac
`

const asUnits = (t: TestContext) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const fakes = tempFolder(t)
  fs.mkdirSync(path.join(fakes, 'units'))
  fs.writeFileSync(path.join(fakes, 'kernel-log'), '')
  for (const [name, text] of Object.entries({ 'systemd-run': systemdRun, systemctl, journalctl })) {
    fs.writeFileSync(path.join(fakes, name), text, { mode: 0o755 })
  }
  const before = process.env['PATH']
  process.env['PATH'] = `${fakes}:${before}`
  cleanup(t, () => void (process.env['PATH'] = before))
  const trust = { uid: process.geteuid?.() ?? 0, stickyFolders: true }
  const verbs = openVerbs(
    { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog, trust },
    { agentToml: host.agentToml, agentUser: null, stateFolder: path.join(host.folder, 'state') },
    'unit',
  )
  return {
    ...host,
    fakes,
    asked: () => fs.readFileSync(path.join(fakes, 'asked'), 'utf8').trimEnd().split('\n'),
    ask: async <V extends Verb>(verb: V, body: RequestOf<V>): Promise<unknown> => {
      const reply = JSON.parse(await verbs.perform(JSON.stringify({ id: 1, verb, body }))) as Record<string, unknown>
      return reply['answer'] ?? reply['refused']
    },
  }
}

test('a reload is a unit with a limit of its own, which is stopped when it takes too long', async (t) => {
  const host = asUnits(t)
  host.allow(
    '[reloads.quick]\ncommand = ["/bin/echo", "$HOME"]\n[reloads.slow]\ncommand = ["/bin/sleep", "600"]\nwithin = "1s"\n',
  )
  assert.deepEqual(await host.ask('reload', { name: 'quick' }), {})
  const [started = ''] = host.asked()
  assert.match(started, /--wait --pipe --unit=muster-once-reload-quick\.service --service-type=exec/)
  assert.match(started, /--property=RuntimeMaxSec=40s/)
  assert.match(started, / -- \/bin\/echo \$\$HOME$/, 'systemd replaces what a shell would')
  const late = (await host.ask('reload', { name: 'slow' })) as { code: string }
  assert.equal(late.code, 'TIMED_OUT')
  assert.equal(host.asked().at(-1), 'systemctl stop muster-once-reload-slow.service')
})

test('a service is a unit as its user, which is left alone when it is the right one', async (t) => {
  if (withPeer(t, 'root') === null) return
  const host = asUnits(t)
  host.allow(
    '[services.app]\nexecutable = "/bin/sleep"\nuser = "nobody"\narguments = "any"\nworking_directory = "/tmp"\n',
  )
  const start = {
    name: 'app',
    arguments: ['5'],
    environment: {},
    working_directory: '/tmp',
    restart: 'on-failure' as const,
  }
  assert.deepEqual(await host.ask('service.start', { ...start, digest: '0123456789abcdef' }), { outcome: 'started' })
  const started = host.asked().find((line) => line.startsWith('systemd-run')) ?? ''
  assert.match(started, /--unit=muster-helper-app\.service/)
  assert.match(started, /--uid=nobody --gid=65534 .*--property=Restart=on-failure .*--property=NoNewPrivileges=yes/)
  assert.match(started, /--working-directory=\/tmp -- \/bin\/sleep 5$/)
  assert.deepEqual(await host.ask('service.start', { ...start, digest: '0123456789abcdef' }), { outcome: 'kept' })
  assert.deepEqual(await host.ask('service.status', {}), {
    services: [
      {
        name: 'app',
        digest: '0123456789abcdef',
        state: 'running',
        restarts: 2,
        pid: 4711,
        ended: null,
        lines: ['it listens'],
      },
    ],
  })
  assert.deepEqual(await host.ask('service.start', { ...start, digest: 'fedcba9876543210' }), { outcome: 'started' })
  assert.deepEqual(await host.ask('service.stop', { name: 'app' }), {})
  assert.deepEqual(await host.ask('service.stop', { name: 'app' }), {})
  assert.deepEqual(fs.readdirSync(path.join(host.fakes, 'units')), [])
})

test('errors in the log of the kernel fail the check that is listed for it', async (t) => {
  const host = asUnits(t)
  const check = { name: 'kernel-errors', arguments: [] }
  assert.equal(((await host.ask('check.run', check)) as { code: string }).code, 'NOT_ALLOWED')
  host.allow('[checks.kernel-errors]\nreads = "kernel-log"\n')
  assert.deepEqual(await host.ask('check.run', check), { exit_code: 0, timed_out: false, line: null, how: 'no errors' })
  fs.writeFileSync(path.join(host.fakes, 'kernel-log'), 'NVRM: Xid 79: GPU has fallen off the bus\n')
  assert.deepEqual(await host.ask('check.run', check), {
    exit_code: 1,
    timed_out: false,
    line: 'NVRM: Xid 79: GPU has fallen off the bus',
    how: 'errors',
  })
})
