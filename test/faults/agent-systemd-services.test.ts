// Services as units of systemd. None runs where tests do: two programs in its place keep units in a folder, and answer as
// systemd's own are documented to.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { mayUseSystemd, openSystemdRunner, prefixOf, unitFrom } from '#agent/fleet/systemd-runner.ts'
import { usualTerms, type WantedService, type WantedTerms } from '#agent/fleet/wanted-services.ts'
import { lastOfUnits, unitsIn } from '#platform/transient-units.ts'
import { cleanup } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

const systemdRun = `#!/bin/sh
printf '%s\\n' "$@" > "$0.asked"
[ -e "$0.refuses" ] && { echo 'Failed to start transient service unit: Access denied' >&2; exit 1; }
for word; do case "$word" in
  --unit=*) unit="\${word#--unit=}";;
  --description=*) description="\${word#--description=}";;
  --wait) exit 0;;
esac; done
[ -e "$(dirname "$0")/units/$unit" ] && { echo "Unit $unit was already loaded." >&2; exit 1; }
printf 'Id=%s\\nDescription=%s\\nLoadState=loaded\\nActiveState=active\\nNRestarts=0\\nMainPID=4711\\n' \\
  "$unit" "$description" > "$(dirname "$0")/units/$unit"
`
const systemctl = `#!/bin/sh
cd "$(dirname "$0")/units" || exit 1
for word; do case "$word" in
  --*) ;;
  show|stop|reset-failed) verb="$word";;
  *) case "$verb" in
    show) for unit in $word; do [ -e "$unit" ] && { cat "$unit"; echo; }; done; true;;
    stop) if [ -e "$word" ]; then rm "$word"; else echo "Failed to stop $word: Unit $word not loaded." >&2; exit 5; fi;;
    reset-failed) echo "Failed to reset failed state of unit $word: Unit $word not loaded." >&2; exit 1;;
  esac;;
esac; done
`

type Fake = { readonly units: string; readonly asked: () => readonly string[]; refuse(): void }

const fakeSystemd = (t: TestContext): Fake => {
  const folder = tempFolder(t)
  fs.mkdirSync(path.join(folder, 'units'))
  for (const [name, text] of Object.entries({ 'systemd-run': systemdRun, systemctl })) {
    fs.writeFileSync(path.join(folder, name), text, { mode: 0o755 })
  }
  const before = process.env['PATH']
  process.env['PATH'] = `${folder}:${before}`
  cleanup(t, () => void (process.env['PATH'] = before))
  return {
    units: path.join(folder, 'units'),
    asked: () => fs.readFileSync(path.join(folder, 'systemd-run.asked'), 'utf8').trimEnd().split('\n'),
    refuse: () => fs.writeFileSync(path.join(folder, 'systemd-run.refuses'), ''),
  }
}

const service = (name: string, digest: string): WantedService => ({
  name,
  command: ['/usr/bin/app', '--price', '$5 %n'],
  terms: usualTerms,
  digest,
  formerDigest: null,
  needsFiles: false,
  shown: { definition: { name, command: [], terms: null }, folder: '/state/overlay/current' },
})
const nothingWrong = { error: null, output: [], unapplied: [] }
const state = '/var/lib/muster-agent'
const unit = (name: string): string => `${prefixOf(state)}${name}.service`

test('a service becomes a unit that is always started again, with the rights of the agent and without its keys', async (t) => {
  const fake = fakeSystemd(t)
  const runner = openSystemdRunner(state)
  assert.equal(await runner.ensure(service('app', 'a'.repeat(16)), { MUSTER_VCLUSTER: 'training' }), 'started')
  const asked = fake.asked()
  for (const word of [
    `--unit=${unit('app')}`,
    '--property=Restart=always',
    '--property=TimeoutStopSec=10s',
    `--property=TemporaryFileSystem=${state}:ro`,
    `--property=BindReadOnlyPaths=-${state}/overlay`,
    `--uid=${process.geteuid?.()}`,
    '--setenv=MUSTER_VCLUSTER=training',
  ]) {
    assert.ok(asked.includes(word), `${word} in ${asked.join(' ')}`)
  }
  // Neither a variable nor a specifier of systemd's.
  assert.deepEqual(asked.slice(asked.indexOf('--') + 1), ['/usr/bin/app', '--price', '$$5 %n'])
  assert.deepEqual(await runner.services(), [
    { ...nothingWrong, name: 'app', digest: 'a'.repeat(16), state: 'running', restarts: 0, pid: 4711, isUp: true },
  ])
})

test('the terms of a service are properties of its unit; one that may end is kept, to see how it did', async (t) => {
  const fake = fakeSystemd(t)
  const limits = { memoryBytes: 2 ** 30, cpus: 1.5, openFiles: 4096 }
  const terms: WantedTerms = {
    ...{ user: 'worker', environment: { PASSWORD: 'say "$5"' }, workingDirectory: '/srv', ...limits },
    restart: 'on-failure',
  }
  const folder = tempFolder(t)
  const runner = openSystemdRunner(folder)
  await runner.ensure({ ...service('app', 'a'.repeat(16)), terms }, {})
  const asked = fake.asked()
  for (const word of [
    ...['--uid=worker', '--working-directory=/srv', '--property=Restart=on-failure'],
    `--property=EnvironmentFile=${folder}/environment/${prefixOf(folder)}app.service.env`,
    ...['--property=MemoryMax=1073741824', '--property=CPUQuota=150%', '--property=LimitNOFILE=4096'],
    '--property=RemainAfterExit=yes',
  ]) {
    assert.ok(asked.includes(word), `${word} in ${asked.join(' ')}`)
  }
  assert.ok(!asked.includes('--collect') && !asked.some((word) => word.startsWith('--gid=')))
  const file = path.join(folder, 'environment', `${prefixOf(folder)}app.service.env`)
  assert.equal(fs.readFileSync(file, 'utf8'), 'PASSWORD="say \\"\\$5\\""\n')
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  assert.ok(!asked.some((word) => word.includes('$5"')), 'every user can read the words of a command')
  await runner.stop(['app'])
  assert.equal(fs.existsSync(file), false)
})

test('the environment of a service that ended while no agent looked does not stay on the disk', async (t) => {
  const fake = fakeSystemd(t)
  const folder = tempFolder(t)
  const terms = { ...usualTerms, environment: { PASSWORD: 'x' } }
  const before = openSystemdRunner(folder)
  for (const name of ['app', 'gone']) await before.ensure({ ...service(name, 'a'.repeat(16)), terms }, {})
  const environments = () => fs.readdirSync(path.join(folder, 'environment')).map((name) => /-(\w+)\./.exec(name)?.[1])
  assert.deepEqual(environments(), ['app', 'gone'])
  // As a unit that is there no more when the machine was started anew.
  fs.rmSync(path.join(fake.units, `${prefixOf(folder)}gone.service`))
  await openSystemdRunner(folder).ensure({ ...service('app', 'a'.repeat(16)), terms }, {})
  assert.deepEqual(environments(), ['app'])
  fs.rmSync(path.join(fake.units, `${prefixOf(folder)}app.service`))
  await openSystemdRunner(folder).services()
  assert.deepEqual(environments(), [], 'also where nothing is started')
})

test('a unit that is the same is left alone, also by the next agent; one that differs or was stopped is replaced', async (t) => {
  const fake = fakeSystemd(t)
  const runner = openSystemdRunner(state)
  await runner.ensure(service('app', 'a'.repeat(16)), {})
  await runner.close()
  const next = openSystemdRunner(state)
  assert.equal(await next.ensure(service('app', 'a'.repeat(16)), {}), 'kept')
  assert.equal(await next.ensure(service('app', 'b'.repeat(16)), {}), 'started')
  const file = path.join(fake.units, unit('app'))
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('ActiveState=active', 'ActiveState=inactive'))
  assert.equal((await next.services())[0]?.state, 'failed')
  assert.equal(await next.ensure(service('app', 'b'.repeat(16)), {}), 'started')
  await next.stop(['app', 'never heard of'])
  assert.deepEqual([fs.readdirSync(fake.units), await next.services()], [[], []])
})

test('two agents on one machine do not see each other’s units, nor the agent’s own', async (t) => {
  const fake = fakeSystemd(t)
  const runner = openSystemdRunner(state)
  await runner.ensure(service('agent', 'a'.repeat(16)), {})
  await openSystemdRunner('/var/lib/other').ensure(service('agent', 'b'.repeat(16)), {})
  assert.equal(fs.readdirSync(fake.units).length, 2)
  assert.ok(!fs.readdirSync(fake.units).includes('muster-agent.service'))
  assert.deepEqual(
    (await runner.services()).map(({ digest }) => digest),
    ['a'.repeat(16)],
  )
})

test('an agent that may not start units finds that out by asking, and reports what systemd refuses', async (t) => {
  const fake = fakeSystemd(t)
  assert.equal(await mayUseSystemd(state), true)
  fake.refuse()
  assert.equal(await mayUseSystemd(state), false)
  await assert.rejects(openSystemdRunner(state).ensure(service('app', 'a'.repeat(16)), {}), /Access denied/)
})

test('what systemctl shows is read unit by unit: one that keeps being started again is said to fail', () => {
  const shown = [
    ['Id=muster-1-a.service', 'Description=Muster service a 0123456789abcdef', 'ActiveState=activating', 'NRestarts=1'],
    [
      'Id=muster-1-b.service',
      'Description=x',
      'LoadState=loaded',
      'ActiveState=activating',
      'NRestarts=7',
      'MainPID=0',
      'Result=exit-code',
      'ExecMainStatus=203',
    ],
    ['Id=muster-1-d.service', 'Description=x', 'ActiveState=active', 'SubState=exited', 'NRestarts=0'],
    ['Id=muster-1-c.service', 'LoadState=not-found', 'ActiveState=inactive'],
    ['Id=muster-agent.service', 'LoadState=loaded', 'ActiveState=active'],
  ]
  assert.deepEqual(unitsIn(shown.map((lines) => lines.join('\n')).join('\n\n'), 'muster-1-').map(unitFrom), [
    { ...nothingWrong, name: 'a', digest: '0123456789abcdef', state: 'starting', restarts: 1, pid: null, isUp: true },
    {
      ...{ ...nothingWrong, name: 'b', digest: '', state: 'failed', restarts: 7, pid: null, isUp: true },
      error: 'ended with exit code 203',
    },
    { ...nothingWrong, name: 'd', digest: '', state: 'ended', restarts: 0, pid: null, isUp: true },
  ])
})

test('the journals of many services that failed are read a few at a time', async (t) => {
  fakeSystemd(t)
  const [folder = ''] = (process.env['PATH'] ?? '').split(':')
  // Each notes how many there are besides it.
  const journalctl = `#!/bin/sh
mkdir "$(dirname "$0")/reading/$$" && ls "$(dirname "$0")/reading" | wc -l >> "$(dirname "$0")/counts"
sleep 0.05
rmdir "$(dirname "$0")/reading/$$"
echo 'it failed'
`
  fs.mkdirSync(path.join(folder, 'reading'))
  fs.writeFileSync(path.join(folder, 'journalctl'), journalctl, { mode: 0o755 })
  const units = Array.from({ length: 12 }, (_, index) => `muster-1-${index}.service`)
  const written = await lastOfUnits(units, 5)
  assert.deepEqual(
    units.map((one) => written.get(one)),
    units.map(() => 'it failed\n'),
  )
  const counts = fs.readFileSync(path.join(folder, 'counts'), 'utf8').trim().split('\n').map(Number)
  assert.ok(counts.length === 12 && Math.max(...counts) <= 4, counts.join(' '))
})
