// Machines that come back after their certificate has expired: the agent and the plane, each in a process of its own.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { agentExitCodes } from '#agent/core/outcome.ts'
import { toPem } from '#pki/pem.ts'
import { eventually } from '../process/eventually.ts'
import { journalEntries } from '../process/plane-records.ts'
import { runMuster } from '../process/run-muster.ts'
import { shared } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { hierarchy } from '../vectors/pki-hierarchy.ts'
import {
  briefProfile,
  connected,
  identityOf,
  nodeOf,
  statusOf,
  stoppedUntilExpired,
  troubleAt,
  withIdentity,
} from './agent-recovery-setup.ts'

const domain = shared(async (scope) => {
  const plane = await startPlane(scope)
  await briefProfile(plane, 'brief', 'recovery.limit=100')
  await briefProfile(plane, 'once', 'recovery.limit=1')
  await briefProfile(plane, 'ask-first', 'recovery.mode=approve')
  return plane
})

const unrelatedRoot = (): string => toPem('CERTIFICATE', hierarchy('p256', Date.now()).root.certificate.der)

test('an agent whose certificate expired while it was off recovers at its next start, in one story', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'off-1', '--profile', 'brief') })
  await connected(plane, 'off-1', 1)
  await stoppedUntilExpired(agent)
  const counter = identityOf(agent).counter
  const again = agent.restart()
  await connected(plane, 'off-1', 2)
  assert.notEqual(identityOf(again).counter, counter)
  assert.equal(identityOf(again).recovery?.credential.kind, 'key')
  const entries = await eventually('the end of the story', async () => {
    const all = await journalEntries(plane, { node: 'off-1' })
    return all.filter(({ type }) => type === 'node.confirmed').length === 2 ? all : null
  })
  const story = ['node.recovery_requested', 'node.recovered', 'node.confirmed'].map((type) =>
    entries.findLast((entry) => entry.type === type),
  )
  assert.equal(new Set(story.map((entry) => entry?.correlation)).size, 1, JSON.stringify(story))
  assert.equal(story[0]?.correlation === undefined, false)
  assert.equal(entries.filter(({ type }) => type === 'node.recovered').length, 1)
})

test('a plane that was restored from a backup knows an earlier epoch than the machine, which recovers all the same', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'restored-1', '--profile', 'brief') })
  await connected(plane, 'restored-1', 1)
  await stoppedUntilExpired(agent)
  withIdentity(agent, (identity) => ({ ...identity, epoch: 7 }))
  const again = agent.restart()
  await connected(plane, 'restored-1', 2)
  assert.equal(identityOf(again).epoch, 2)
})

test('roots of the runtime that went stale are refreshed through recovery', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'stale-1', '--profile', 'gpu-cloud') })
  await connected(plane, 'stale-1', 1)
  await agent.stop()
  const { roots } = identityOf(agent)
  const stale = unrelatedRoot()
  withIdentity(agent, (identity) => ({ ...identity, roots: [stale] }))
  const again = agent.restart()
  await connected(plane, 'stale-1', 2, 60_000)
  assert.deepEqual(identityOf(again).roots, roots)
  const requested = await journalEntries(plane, { node: 'stale-1', type: 'node.recovery_requested' })
  assert.match(JSON.stringify(requested), /server_tls_untrusted/)
})

test('with stale roots of recovery it fails closed, and says so', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'blocked-1', '--profile', 'brief') })
  await connected(plane, 'blocked-1', 1)
  await stoppedUntilExpired(agent)
  const stale = unrelatedRoot()
  withIdentity(agent, (identity) => {
    const { recovery } = identity
    return recovery === null
      ? assert.fail()
      : { ...identity, recovery: { ...recovery, trust: { ...recovery.trust, roots: [stale] } } }
  })
  const again = agent.restart()
  const status = await troubleAt(again, 'recovery', 'server_tls_untrusted')
  assert.equal(status.troubles.find(({ place }) => place === 'recovery')?.class, 'recovery_enrollment_blocked')
  assert.deepEqual(await journalEntries(plane, { node: 'blocked-1', type: 'node.recovery_requested' }), [])
  assert.equal((await nodeOf(plane, 'blocked-1')).epoch, 1)
})

test('in compatibility mode a bearer token recovers, and every renewal brings another', async (t) => {
  const plane = domain()
  const join = await plane.token('--node', 'bearer-1', '--profile', 'brief')
  const agent = startAgent(t, { join, args: ['--recovery', 'bearer'] })
  await connected(plane, 'bearer-1', 1)
  const first = identityOf(agent)
  await eventually('a renewal', () => identityOf(agent).current.serial !== first.current.serial, { withinMs: 15_000 })
  const tokens = [first, identityOf(agent)].map(({ recovery }) =>
    recovery?.credential.kind === 'bearer' ? recovery.credential.token : assert.fail(),
  )
  assert.notEqual(tokens[0], tokens[1])
  await stoppedUntilExpired(agent)
  const again = agent.restart()
  await connected(plane, 'bearer-1', 2)
  assert.equal(identityOf(again).recovery?.credential.kind, 'bearer')
  assert.doesNotMatch(again.stderr(), /recover_/)
})

test('a node that recovered as often as it may waits for an operator, who says yes, or no and yes', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'budget-1', '--profile', 'once') })
  await connected(plane, 'budget-1', 1)
  await stoppedUntilExpired(agent)
  const second = agent.restart()
  await connected(plane, 'budget-1', 2)
  await stoppedUntilExpired(second)
  const third = second.restart()
  await troubleAt(third, 'recovery', 'RECOVERY_BUDGET_SPENT')
  assert.equal((await plane.muster('node', 'deny', 'budget-1')).code, 0)
  third.signal('SIGUSR2')
  await troubleAt(third, 'recovery', 'RECOVERY_DENIED')
  assert.equal((await plane.muster('node', 'approve', 'budget-1')).code, 0)
  third.signal('SIGUSR2')
  await connected(plane, 'budget-1', 3)
})

test('where people decide about a recovery, it waits for them', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'ask-1', '--profile', 'ask-first') })
  await connected(plane, 'ask-1', 1)
  await stoppedUntilExpired(agent)
  const again = agent.restart()
  await troubleAt(again, 'recovery', 'APPROVAL_REQUIRED')
  assert.equal((await plane.muster('node', 'approve', 'ask-1')).code, 0)
  again.signal('SIGUSR2')
  await connected(plane, 'ask-1', 2)
})

test('a repair bundle brings a node back into quarantine, and its evidence lets an operator release it', async (t) => {
  const plane = domain()
  const agent = startAgent(t, {
    // Not a brief one: a certificate in quarantine is not renewed, and has to last until the release.
    join: await plane.token('--node', 'repair-1'),
    args: ['--rehearse-every', '1s', '--report-every', '200ms'],
  })
  await connected(plane, 'repair-1', 1)
  const bundle = path.join(tempFolder(t), 'repair.json')
  const made = await plane.muster('node', 'repair-bundle', 'repair-1', '--reason', 'a test', '--out', bundle)
  assert.equal(made.code, 0, made.stderr)
  // That its channel was cut is all it knows at first.
  await eventually('the agent to know that it is shut out', () =>
    statusOf(agent).troubles.some((what) => what.class === 'identity_revoked_or_fenced'),
  )
  const given = await runMuster(['agent', 'repair', '--state', agent.state, '--bundle-file', bundle], {})
  assert.equal(given.code, 0, given.stderr)
  await eventually(
    'a channel out of quarantine',
    async () => {
      const node = await nodeOf(plane, 'repair-1')
      return node.membership === 'quarantined' && node.channel_open && node.epoch === 2
    },
    { withinMs: 30_000 },
  )
  assert.equal(fs.existsSync(path.join(agent.state, 'repair.json')), false)
  const [repaired] = await journalEntries(plane, { node: 'repair-1', type: 'node.repaired' })
  assert.equal(repaired.body.failure_class, 'identity_revoked_or_fenced')
  assert.equal(repaired.body.repair_reason, 'a test')
  await eventually(
    'a release that is allowed',
    async () => (await plane.muster('node', 'release', 'repair-1')).code === 0,
    { withinMs: 30_000, everyMs: 1000 },
  )
  await connected(plane, 'repair-1', 2, 60_000)
})

test('a repair bundle that is void leaves a machine what it can recover with', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'void-1', '--profile', 'brief') })
  await connected(plane, 'void-1', 1)
  await agent.stop()
  const { recovery } = identityOf(agent)
  const bundle = path.join(tempFolder(t), 'repair.json')
  const made = await plane.muster('node', 'repair-bundle', 'void-1', '--reason', 'a test', '--out', bundle)
  assert.equal(made.code, 0, made.stderr)
  // Nobody had used it: the release is an ordinary one, after which it is worth nothing.
  assert.equal((await plane.muster('node', 'release', 'void-1')).code, 0)
  const given = await runMuster(['agent', 'repair', '--state', agent.state, '--bundle-file', bundle], {})
  assert.equal(given.code, 0, given.stderr)
  const again = agent.restart()
  await connected(plane, 'void-1', 2)
  assert.deepEqual(identityOf(again).recovery, recovery)
})

test('a repair bundle for another node is not taken', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'repair-2') })
  await connected(plane, 'repair-2', 1)
  const other = startAgent(t, { join: await plane.token('--node', 'repair-3') })
  await connected(plane, 'repair-3', 1)
  const bundle = path.join(tempFolder(t), 'repair.json')
  const made = await plane.muster('node', 'repair-bundle', 'repair-3', '--reason', 'a test', '--out', bundle)
  assert.equal(made.code, 0, made.stderr)
  const given = await runMuster(['agent', 'repair', '--state', agent.state, '--bundle-file', bundle], {})
  assert.equal(given.code, 1)
  assert.match(given.stderr, /is for node repair-3, and this is repair-2/)
  assert.doesNotMatch(given.stderr, /repair_[A-Za-z0-9_-]{43}/)
  assert.equal(fs.existsSync(path.join(agent.state, 'repair.json')), false)
  await other.stop()
})

test('a node that was revoked while it was off does not recover: its agent ends', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'gone-1', '--profile', 'brief') })
  await connected(plane, 'gone-1', 1)
  await stoppedUntilExpired(agent)
  assert.equal((await plane.muster('node', 'revoke', 'gone-1', '--reason', 'a test')).code, 0)
  const again = agent.restart()
  assert.equal((await again.ended).code, agentExitCodes.revoked)
  assert.equal(statusOf(again).outcome?.code, 'NODE_REVOKED')
})

test('a machine that was enrolled before the plane understood more learns of it at its next renewal', async (t) => {
  const plane = domain()
  const agent = startAgent(t, { join: await plane.token('--node', 'before-1', '--profile', 'gpu-cloud') })
  await connected(plane, 'before-1', 1)
  await agent.stop()
  const { understands } = identityOf(agent)
  assert.ok(understands.includes('report'))
  withIdentity(agent, (identity) => ({ ...identity, understands: ['csr'], counter: null, recovery: null }))
  const again = agent.restart()
  await connected(plane, 'before-1', 1)
  assert.equal((await runMuster(['agent', 'renew', '--now', '--state', again.state], {})).code, 0)
  assert.deepEqual(identityOf(again).understands, understands)
  assert.notEqual(identityOf(again).counter, null)
  await eventually('its first report', () => (statusOf(again).reports?.acknowledged ?? 0) > 0, { withinMs: 15_000 })
})
