// What agent.toml lists, run as units of systemd. None runs where tests do: two programs in its place note what they are asked, and
// do as systemd's own are documented to.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openVerbs } from '#agent/helper/perform-verb.ts'
import { unitMark } from '#agent/helper/run-listed.ts'
import type { RequestOf, Verb } from '#agent/helper/verbs.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { hostOfPrograms } from '../fakes/host-of-programs.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
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
case "$*" in
  *--property=Job*) echo 42; exit 0;;
  *--property=DefaultLimitNOFILE) echo DefaultLimitNOFILE=64; exit 0;;
  *' reload hanging.service') exec sleep 600;;
esac
for word; do case "$word" in
  --*) ;;
  show|stop|reset-failed|cancel|kill) verb="$word";;
  *) case "$verb" in
    show) for unit in $word; do [ -e "$unit" ] && { cat "$unit"; echo; }; done; true;;
    cancel|kill) ;;
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
    {
      agentToml: host.agentToml,
      agentUser: null,
      stateFolder: path.join(host.folder, 'state'),
      lookEveryMs: 50,
      environments: path.join(fakes, 'environments'),
    },
    'unit',
  )
  cleanup(t, () => verbs.close())
  return {
    ...host,
    fakes,
    mark: unitMark(host.agentToml),
    units: () => fs.readdirSync(path.join(fakes, 'units')),
    environments: () => fs.readdirSync(path.join(fakes, 'environments')),
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
  const started = host.asked().find((line) => line.startsWith('systemd-run')) ?? ''
  assert.match(started, /--wait --pipe --unit=muster-once-[0-9a-f]{8}-reload-quick\.service --service-type=exec/)
  assert.match(started, /--property=RuntimeMaxSec=40s/)
  assert.match(started, / -- \/bin\/echo \$\$HOME$/, 'systemd replaces what a shell would')
  const late = (await host.ask('reload', { name: 'slow' })) as { code: string }
  assert.equal(late.code, 'TIMED_OUT')
  assert.equal(callsOf(host).at(-1), `systemctl stop muster-once-${host.mark}-reload-slow.service`)
})

test('a unit whose reload hangs: what was asked of systemd is cancelled, and the command of the unit that hangs is killed', async (t) => {
  const host = asUnits(t)
  host.allow('[reloads.web]\nunit = "hanging.service"\nwithin = "1s"\n')
  const late = (await host.ask('reload', { name: 'web' })) as { code: string }
  assert.equal(late.code, 'TIMED_OUT')
  assert.deepEqual(callsOf(host), [
    'systemctl --no-ask-password reload hanging.service',
    'systemctl show --property=Job --value hanging.service',
    'systemctl --no-ask-password cancel 42',
    'systemctl --no-ask-password kill --kill-who=control --signal=SIGKILL hanging.service',
  ])
})

/** Without those by which it looks for services that are not listed. */
const callsOf = (host: ReturnType<typeof asUnits>): string[] =>
  host.asked().filter((line) => !line.includes('muster-helper-'))

test('a service is a unit as its user, which is left alone when it is the right one', async (t) => {
  if (withPeer(t, 'root') === null) return
  const host = asUnits(t)
  host.allow(
    '[services.app]\nexecutable = "/bin/sleep"\nuser = "nobody"\narguments = "any"\nworking_directory = "/tmp"\nenvironment = ["PASSWORD"]\n',
  )
  const start = {
    name: 'app',
    arguments: ['5'],
    environment: { PASSWORD: 'hunter22' },
    working_directory: '/tmp',
    restart: 'on-failure' as const,
    // More files than the host gives to any service: it gets no more than others.
    limits: { memory_bytes: 2 ** 30, cpus: 1.5, open_files: 2 ** 30 },
  }
  assert.deepEqual(await host.ask('service.start', { ...start, digest: '0123456789abcdef' }), { outcome: 'started' })
  const started = host.asked().find((line) => line.startsWith('systemd-run')) ?? ''
  assert.match(started, new RegExp(`--unit=muster-helper-${host.mark}-app\\.service`))
  assert.match(started, /--uid=nobody --gid=65534 .*--property=Restart=on-failure .*--property=NoNewPrivileges=yes/)
  assert.match(started, /--property=MemoryMax=1073741824 --property=CPUQuota=150% --property=LimitNOFILE=64 /)
  assert.match(started, /--working-directory=\/tmp --property=EnvironmentFile=\S+\.env -- \/bin\/sleep 5$/)
  assert.doesNotMatch(host.asked().join('\n'), /hunter22/, 'every user can read the words of a command')
  const [file = ''] = host.environments().map((name) => path.join(host.fakes, 'environments', name))
  assert.equal(fs.readFileSync(file, 'utf8'), 'PASSWORD="hunter22"\n')
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
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
  assert.deepEqual([host.units(), host.environments()], [[], []])
})

test('a service that agent.toml does not list any more, or lists otherwise, is stopped, and it is said why', async (t) => {
  if (withPeer(t, 'root') === null) return
  const host = asUnits(t)
  const listed = (name: string, executable: string): string =>
    `[services.${name}]\nexecutable = "${executable}"\nuser = "nobody"\narguments = "any"\n`
  const terms = { environment: {}, working_directory: null, restart: 'always' as const, digest: '0123456789abcdef' }
  const start = (name: string) => host.ask('service.start', { name, arguments: ['5'], ...terms })
  host.allow(listed('kept', '/bin/sleep') + listed('gone', '/bin/sleep') + listed('other', '/bin/sleep'))
  for (const name of ['kept', 'gone', 'other']) assert.deepEqual(await start(name), { outcome: 'started' })
  host.allow('[services.kept\n')
  assert.equal(host.units().length, 3)
  host.allow(listed('kept', '/bin/sleep') + listed('other', '/bin/cat'))
  await eventually('two to be stopped', () => host.units().length === 1)
  type Status = { services: { name: string; ended: string | null }[] }
  // A unit is gone a moment before the helper knows that it has stopped it.
  const { services } = await eventually('why', async () => {
    const status = (await host.ask('service.status', {})) as Status
    return status.services.length === 3 ? status : null
  })
  assert.deepEqual(
    services.map(({ name, ended }) => [name, ended]),
    [
      ['kept', null],
      ['gone', 'could not be started again: agent.toml does not list service gone any more'],
      ['other', 'could not be started again: agent.toml lists service other otherwise than it was started'],
    ],
  )
  assert.deepEqual(await start('other'), { outcome: 'started' }, 'as it is listed now, of the same digest')
  assert.equal(((await start('gone')) as { code: string }).code, 'NOT_ALLOWED')
  fs.rmSync(host.agentToml)
  await eventually('all to be stopped', () => host.units().length === 0)
})

test('errors in the log of the kernel fail the check that is listed for it', async (t) => {
  const host = asUnits(t)
  const check = { name: 'kernel-errors', arguments: [] }
  assert.equal(((await host.ask('check.run', check)) as { code: string }).code, 'NOT_ALLOWED')
  host.allow('[checks.kernel-errors]\nreads = "kernel-log"\n[checks.kernel-log]\nreads = "kernel-log"\n')
  assert.deepEqual(await host.ask('check.run', check), { exit_code: 0, timed_out: false, line: null, how: 'no errors' })
  fs.writeFileSync(path.join(host.fakes, 'kernel-log'), 'NVRM: Xid 79: GPU has fallen off the bus\n')
  assert.deepEqual(await host.ask('check.run', check), {
    exit_code: 1,
    timed_out: false,
    line: 'NVRM: Xid 79: GPU has fallen off the bus',
    how: 'errors',
  })
  await host.ask('check.run', { name: 'kernel-log', arguments: [] })
  const units = host.asked().flatMap((line) => /--unit=muster-once-\w+-(\S+)/.exec(line)?.[1] ?? [])
  assert.deepEqual(new Set(units), new Set(['check-kernel-errors.service', 'check-kernel-log.service']))
})
