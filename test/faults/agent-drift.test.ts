// What was applied and is not what is there any more: reported, and put right where the vCluster says so; in maintenance mode not
// even looked for.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openConfigKeeper } from '#agent/channel/last-config.ts'
import { openKeeper } from '#agent/state/identity-keeper.ts'
import { memoryCredentialStore } from '#agent/state/credential-store.ts'
import { openJudgedClock } from '#agent/core/judged-clock.ts'
import { openOverlayKeeper, type OverlayKeeper } from '#agent/fleet/overlay-keeper.ts'
import { openDiagnostics } from '#agent/diagnostics/open-diagnostics.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import type { PlaneConfig } from '#wire/channel/channel.ts'
import { OverlayStateBody, type CapabilityReportBody } from '#wire/node/node-runs.ts'
import type { ConfigOverlay } from '#wire/fleet/overlay.ts'
import { Value } from 'typebox/value'
import { testAgentConfig } from '../fakes/test-agent.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { heart } from '../process/heart.ts'

type Held = {
  readonly overlay: OverlayKeeper
  readonly state: string
  readonly reported: OverlayStateBody[]
  readonly capabilities: CapabilityReportBody[]
  readonly noted: () => readonly string[]
  send(changes: Partial<ConfigOverlay>, vcluster?: string | null): void
}

const file = { path: 'etc/app.conf', mode: 0o644, content: 'right\n' }
const profile = {
  name: 'p',
  key_storage: 'file',
  key_types: ['p256'],
  lifetime_ms: 1e6,
  renew_from: 0.5,
  renew_to: 0.6,
}

const held = (t: TestContext, from = '/'): Held => {
  const join = { kind: 'token' } as never
  const given = testAgentConfig(t, join, {})
  const config = { ...given, stateFolder: from === '/' ? given.stateFolder : path.relative(from, given.stateFolder) }
  const core = { clock: openJudgedClock(systemClock), timers: systemTimers, random: systemRandom, log: silentLog }
  const { record } = openDiagnostics(core, config)
  const lastConfig = openConfigKeeper(config.stateFolder)
  const keeper = openKeeper(memoryCredentialStore)
  const reported: OverlayStateBody[] = []
  const capabilities: CapabilityReportBody[] = []
  const overlay = openOverlayKeeper(core, config, { keeper, lastConfig, record }, () => 'none', { driftEveryMs: 50 })
  overlay.start()
  overlay.use({
    overlayState: (body) => void reported.push(body),
    capabilities: (body) => void capabilities.push(body),
  })
  cleanup(t, () => overlay.close())
  let revision = 0
  return {
    overlay,
    state: config.stateFolder,
    reported,
    capabilities,
    noted: () => record.now().events.map(({ code }) => code),
    send: (changes, vcluster = 'training') => {
      revision += 1
      const policy = { enforcement_mode: 'observe', exec_whitelist: [], shell_whitelist: [], regulated: false } as const
      const asked = { vcluster_revision: 1, policy, files: [file], services: [], detect_drift: true, ...changes }
      const endpoints = { id: 'runtime', revision: 1, runtime: ['https://a.test'], stream: ['wss://a.test'] }
      lastConfig.keep({ revision, vcluster, profile, endpoints, overlay: asked } as PlaneConfig)
      overlay.configChanged()
    },
  }
}

const enforcing: ConfigOverlay['policy'] = {
  enforcement_mode: 'enforce',
  exec_whitelist: [],
  shell_whitelist: [],
  regulated: false,
}
const confOf = (state: string): string => path.join(state, 'overlay', 'current', file.path)
const last = (it: Held): OverlayStateBody | undefined => it.reported.at(-1)

test('observed: drift is reported once and stays as it is, until the file is right again', async (t) => {
  const it = held(t)
  it.send({})
  await eventually('it to be applied', () => last(it)?.applied === true)
  fs.writeFileSync(confOf(it.state), 'wrong\n')
  await eventually('drift to be reported', () => last(it)?.drift.join() === 'file etc/app.conf: changed')
  assert.equal(fs.readFileSync(confOf(it.state), 'utf8'), 'wrong\n')
  const frames = it.reported.length
  fs.writeFileSync(confOf(it.state), file.content)
  await eventually('the end of it to be reported', () => last(it)?.drift.length === 0)
  assert.equal(it.reported.length, frames + 1, 'nothing is reported that has not changed')
  assert.ok(it.noted().includes('drift'))
  assert.ok(it.reported.every((body) => Value.Check(OverlayStateBody, body)))
})

test('enforced: drift is put right, and on record; the plane hears nothing of it; also a link that leads elsewhere', async (t) => {
  const it = held(t)
  it.send({ policy: enforcing })
  await eventually('it to be applied', () => last(it)?.applied === true)
  for (const spoil of [
    () => fs.writeFileSync(confOf(it.state), 'wrong\n'),
    () => fs.rmSync(confOf(it.state)),
    () => fs.rmSync(path.join(it.state, 'overlay', 'current')),
  ]) {
    const noted = it.noted().length
    const frames = it.reported.length
    spoil()
    await eventually('it to be put right', () => it.noted().slice(noted).includes('drift_corrected'))
    // An alert would begin and end with it, twice over a webhook.
    assert.ok(it.reported.slice(frames).every(({ drift }) => drift.length === 0))
    assert.equal(fs.readFileSync(confOf(it.state), 'utf8'), file.content)
  }
  assert.ok(it.noted().includes('drift_corrected'))
})

test('a service that fails is no drift: it is said with its reason, and the record has it', async (t) => {
  const it = held(t)
  const app = heart(path.dirname(it.state), 'app')
  const services = [
    { name: 'app', command: app.command },
    { name: 'broken', command: ['/bin/sh', '-c', 'echo out of luck; exit 7'] },
    { name: 'missing', command: ['/nope/bin'] },
  ]
  it.send({ services })
  await eventually('both to fail', () => last(it)?.services.filter(({ state }) => state === 'failed').length === 2)
  const [running, broken, missing] = last(it)?.services ?? []
  assert.deepEqual([running?.state, running?.error], ['running', undefined])
  assert.deepEqual([broken?.error, broken?.output?.at(-1)], ['ended with exit code 7', 'out of luck'])
  assert.match(missing?.error ?? '', /ENOENT/)
  await eventually('several looks', () => app.beats() > 10)
  assert.ok(it.reported.every((body) => body.drift.length === 0))
  assert.ok(it.noted().includes('service_failed'))
  assert.ok(it.reported.every((body) => Value.Check(OverlayStateBody, body)))
})

test('health checks are made at once and again, say their first line, and end with the vCluster', async (t) => {
  const it = held(t)
  const flag = path.join(path.dirname(it.state), 'broken')
  const script = `if [ -e ${flag} ]; then echo "flag is up"; echo more; exit 1; else echo fine; fi`
  const check = (name: string, command: string[], timeout_ms = 5_000) => ({
    ...{ name, command, interval_ms: 1_000, timeout_ms },
  })
  const checks = [
    check('flag', ['/bin/sh', '-c', script]),
    check('slow', ['/bin/sh', '-c', 'sleep 30 & wait'], 200),
    check('missing', ['/nope/check']),
    check('kernel', ['muster:kernel-errors']),
  ]
  const said = (name: string) => last(it)?.checks?.find((one) => one.name === name)
  it.send({ checks })
  await eventually('all of them', () => last(it)?.checks?.every(({ line }) => line !== 'not made yet'))
  assert.deepEqual([said('flag')?.state, said('flag')?.line], ['passed', 'fine'])
  assert.deepEqual([said('slow')?.state, said('slow')?.line], ['failed', 'did not end within 200 ms'])
  assert.match(said('missing')?.line ?? '', /could not be started: .*ENOENT/)
  assert.deepEqual([said('kernel')?.state, /muster-agent-helper/.test(said('kernel')?.line ?? '')], ['not_run', true])
  fs.writeFileSync(flag, '')
  await eventually('it to fail', () => said('flag')?.state === 'failed')
  assert.equal(said('flag')?.line, 'flag is up')
  fs.rmSync(flag)
  await eventually('it to pass again', () => said('flag')?.state === 'passed')
  it.send({})
  await eventually('none to be left', () => last(it)?.config_revision === 2 && last(it)?.checks === undefined)
})

test('in maintenance mode nothing is compared, the report says so, and an empty overlay leaves no trace', async (t) => {
  const it = held(t)
  it.send({ files: [], detect_drift: false, vcluster_revision: 0 }, null)
  await eventually('it to be reported', () => last(it)?.applied === true)
  assert.equal(fs.existsSync(path.join(it.state, 'overlay')), false)
  assert.deepEqual([it.capabilities.at(-1)?.vcluster, it.capabilities.at(-1)?.services], [null, 'supervised'])
  it.send({})
  await eventually('the vCluster to be reported', () => it.capabilities.at(-1)?.vcluster === 'training')
  const app = heart(path.dirname(it.state), 'app')
  it.send({ detect_drift: false, vcluster_revision: 0, services: [{ name: 'clock', command: app.command }] }, null)
  await eventually('it to run', () => app.beats() > 0 && last(it)?.config_revision === 3)
  fs.writeFileSync(confOf(it.state), 'wrong\n')
  const beats = app.beats()
  await eventually('several looks', () => app.beats() > beats + 3)
  assert.deepEqual(last(it)?.drift, [])
})

test('what cannot be put in place is reported, tried again, and reported when it works', async (t) => {
  const it = held(t)
  fs.mkdirSync(it.state, { recursive: true })
  fs.writeFileSync(path.join(it.state, 'overlay'), 'in the way')
  it.send({})
  await eventually('the failure to be reported', () => last(it)?.applied === false)
  assert.match(last(it)?.detail ?? '', /not a folder|EEXIST/)
  fs.rmSync(path.join(it.state, 'overlay'))
  await eventually('it to be applied', () => last(it)?.applied === true)
  assert.equal(fs.readFileSync(confOf(it.state), 'utf8'), file.content)
})

test('services run from the root; a state folder that was named from elsewhere leads to the same files', async (t) => {
  const it = held(t, process.cwd())
  assert.ok(!path.isAbsolute(it.state))
  const script = {
    path: 'bin/app',
    mode: 0o755,
    content: '#!/bin/sh\necho "$0" > "$MUSTER_OVERLAY/../ran"\nexec sleep 60\n',
  }
  it.send({ files: [script], services: [{ name: 'app', command: ['{overlay}/bin/app'] }] })
  const ran = path.join(it.state, 'overlay', 'ran')
  const here = path.resolve(it.state, 'overlay', 'current', 'bin', 'app')
  await eventually('it to have run', () => fs.existsSync(ran) && fs.readFileSync(ran, 'utf8') === `${here}\n`)
})
