// This release beside those before it (ruling 27): their data folders, their agents, their planes, and their replicas.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { knowsSchema } from '#plane/store/postgres/schema-gate.ts'
import {
  fieldsSince,
  kindsSince,
  newestSchema,
  oldestSchema,
  releaseOfSchema,
} from '#plane/store/postgres/schema-since.ts'
import { formatJoinString, parseJoinString } from '#wire/core/join-string.ts'
import { refusalIn, succeeded } from '../compliance/ask-plane.ts'
import { outsideRoot } from '../fakes/scripted-issuers.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { withPeer } from '../peers/peer.ts'
import { startedCommand } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { freePort } from '../process/free-port.ts'
import type { Json, Reply } from '../process/operator-call.ts'
import { postgresDatabase, type TestDatabase } from '../process/postgres-server.ts'
import { startReplicaPlanes } from '../process/replica-planes.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tamperWith } from '../process/tamper.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { commandOf, previousReleases, type NamedRelease } from './previous-release.ts'

const joinIn = (text: string) => parseJoinString(text) ?? assert.fail('no join string')

const membershipOf = async (plane: Plane, node: string): Promise<string> =>
  (await plane.api('GET', `/v1/nodes/${node}`)).body.membership

const serialOf = async (plane: Plane, node: string): Promise<string> =>
  (await plane.api('GET', `/v1/nodes/${node}`)).body.certificates.find(
    (one: { slot: string }) => one.slot === 'current',
  )?.serial

const isConnected = async (plane: Plane, node: string): Promise<boolean> => {
  const { body } = await plane.api('GET', `/v1/nodes/${node}`)
  return body.membership === 'active' && body.channel_open === true
}
const toBeConnected = (plane: Plane, node: string) =>
  eventually(`${node} to be active and connected`, () => isConnected(plane, node), { withinMs: 30_000 })

const renewNow = async (plane: Plane, state: string, node: string): Promise<void> => {
  const serialBefore = await serialOf(plane, node)
  const { code, stderr } = await plane.muster('agent', 'renew', '--now', '--state', state)
  assert.equal(code, 0, stderr)
  await eventually(`${node} to have another certificate`, async () => (await serialOf(plane, node)) !== serialBefore)
}

/**
 * Machines that were cloned from an image with a request in it. Agents of 0.2.0 send the key of the image: the second is refused
 * in a word it knows, makes a key of its own, and joins. Later ones make a key of their own for another join string.
 */
const clonesOfAnImage = async (t: Scope, plane: Plane, command: string, version: string): Promise<void> => {
  const { domain, rootFingerprint } = plane
  const url = `https://127.0.0.1:${await freePort()}`
  const join = formatJoinString({
    ...{ url, domain, rootFingerprint, marked: true },
    secret: `enroll_${'x'.repeat(43)}`,
  })
  const image = startAgent(t, { command, join })
  await eventually('the request to be kept', async () => fs.existsSync(path.join(image.state, 'identity.json')))
  await image.kill9()
  for (const name of ['clone-1', 'clone-2']) {
    const state = path.join(tempFolder(t), 'state')
    fs.cpSync(image.state, state, { recursive: true })
    startAgent(t, { command, state, join: await plane.token('--node', name) })
    await toBeConnected(plane, name)
  }
  const sendsKeyOfImage = version === '0.2.0'
  if (sendsKeyOfImage) await refusalIn(plane, 'KEY_IN_USE')
  const { alerts } = (await plane.api('GET', '/v1/alerts')).body
  const wasTold = alerts.some(({ kind }: { kind: string }) => kind === 'copied_image')
  assert.equal(wasTold, sendsKeyOfImage)
}

const besideRelease = (release: NamedRelease): void => {
  const commandBefore = commandOf(release)

  test('a data folder of the release before is taken over with its nodes, its agents and its operators', async (t) => {
    const command = await commandBefore(t)
    if (command === null) return
    const old = await startPlane(t, { command })
    const oldAgent = startAgent(t, { command, join: await old.token('--node', 'gpu-001') })
    await toBeConnected(old, 'gpu-001')
    const stolen = startAgent(t, { command, join: await old.token('--node', 'gpu-002') })
    await toBeConnected(old, 'gpu-002')
    await stolen.stop()
    await old.api('POST', '/v1/nodes/gpu-002/revoke', { reason: 'stolen' })
    await old.stop()

    const plane = await old.restart({ command: startedCommand })
    assert.equal(plane.rootFingerprint, old.rootFingerprint)
    assert.equal(await membershipOf(plane, 'gpu-002'), 'revoked')
    // The agent of the release before goes on, and renews.
    await toBeConnected(plane, 'gpu-001')
    await renewNow(plane, oldAgent.state, 'gpu-001')
    // The machine is upgraded too: the same state folder, the agent of this release.
    await oldAgent.stop()
    const newAgent = oldAgent.restart({ command: startedCommand })
    await toBeConnected(plane, 'gpu-001')
    await renewNow(plane, newAgent.state, 'gpu-001')
    // And back: the agent of the release before reads what this one has kept.
    await newAgent.stop()
    newAgent.restart({ command })
    await toBeConnected(plane, 'gpu-001')
    // It has no helper, or knows nothing of tasks: one waits, and says why.
    const queued = await plane.api('POST', '/v1/tasks', someTask('gpu-001'))
    assert.equal(queued.status, 201, JSON.stringify(queued.body))
    assert.match(queued.body.waits_because, /^gpu-001 is connected and takes no tasks: /)
    // A machine with the agent of the release before joins.
    startAgent(t, { command, join: await plane.token('--node', 'gpu-003') })
    await Promise.all([toBeConnected(plane, 'gpu-003'), clonesOfAnImage(t, plane, command, release.version)])
    const verified = await plane.muster('journal', 'verify')
    assert.equal(verified.code, 0, verified.stdout + verified.stderr)
    // 0.2.0 banned no recovery key with a node: the ban is added, and that is no alert.
    const { sql } = tamperWith(plane.data)
    await eventually('the recovery key of the revoked node to be banned', async () => {
      const [found] = await sql(`SELECT count(*) AS bans FROM key_ban JOIN node ON node.key = 'gpu-002'
        AND key_ban.key = json_extract(node.doc, '$.recovery.credential.spki')`)
      return Number(found?.['bans']) === 1
    })
    const { alerts } = (await plane.api('GET', '/v1/alerts')).body
    assert.deepEqual(
      alerts.filter(({ kind }: Json) => kind === 'rows_differ'),
      [],
    )
    if (schemaOf(release.version) < newestSchema) return
    // Without a step between them the plane goes back, too.
    await plane.stop()
    const back = await plane.restart({ command })
    await Promise.all([toBeConnected(back, 'gpu-001'), toBeConnected(back, 'gpu-003')])
    assert.equal(await membershipOf(back, 'gpu-002'), 'revoked')
  })

  test('an agent of this release works with a plane of the release before', async (t) => {
    const command = await commandBefore(t)
    if (command === null) return
    const old = await startPlane(t, { command })
    const agent = startAgent(t, { join: await old.token('--node', 'gpu-001') })
    await toBeConnected(old, 'gpu-001')
    await renewNow(old, agent.state, 'gpu-001')
    // Planes of the release before name no field in a refusal, and know all that an enrollment has: nothing is left out.
    const wireguard = { interface: 'muster0', endpoint: null }
    await old.api('POST', '/v1/profiles', { name: 'meshed', from: 'gpu-cloud', set: { 'wireguard.mode': 'offered' } })
    const withKey = joinIn(await old.token('--node', 'wg-001', '--profile', 'meshed'))
    runTestAgent(t, testAgentConfig(t, withKey, { wireguard }))
    await toBeConnected(old, 'wg-001')
    const { body } = await old.api('GET', '/v1/nodes/wg-001')
    assert.match(body.wireguard.public_key, /^[A-Za-z0-9+/]{43}=$/)
    const endpoint = { ipv4: '127.0.0.1', ipv6: null, port: 51_820 }
    const wrong = joinIn(await old.token('--node', 'wg-002', '--profile', 'meshed'))
    const refused = await runTestAgent(t, testAgentConfig(t, wrong, { wireguard: { ...wireguard, endpoint } })).outcome
    assert.equal(refused.kind, 'refused')
    assert.equal(await membershipOf(old, 'wg-002'), 'registered')
  })

  test('a replica of each release serve one database together', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const command = await commandBefore(t)
    if (command === null) return
    const database = await postgresDatabase(t, 'empty')
    const { env } = database
    const planes = await startReplicaPlanes(t, 3, env, (number) => (number === 2 ? {} : { command }))
    const [old, plane, other] = planes as [Plane, Plane, Plane]
    const agents = [
      startAgent(t, { command, join: await old.token('--node', 'old-at-old') }),
      startAgent(t, { join: await old.token('--node', 'new-at-old') }),
      startAgent(t, { command, join: await plane.token('--node', 'old-at-new') }),
      startAgent(t, { join: await plane.token('--node', 'new-at-new') }),
    ]
    const names = ['old-at-old', 'new-at-old', 'old-at-new', 'new-at-new']
    for (const name of names) await toBeConnected(name.endsWith('old') ? old : plane, name)
    // Each is cut off by the replica it is not connected to.
    for (const name of names) {
      const other = name.endsWith('old') ? plane : old
      const revoked = await other.api('POST', `/v1/nodes/${name}/revoke`, { reason: 'stolen' })
      assert.equal(revoked.status, 200, JSON.stringify(revoked.body))
    }
    for (const name of names)
      for (const replica of [old, plane]) assert.equal(await membershipOf(replica, name), 'revoked')
    for (const agent of agents) await agent.stop()
    await upgradedAfterLast(t, { release, command, database, old, plane, other })
  })
}

const someTask = (node: string) => ({ node, type: 'service', parameters: { name: 'web', action: 'restart' } })

/** What is refused until every replica knows tasks, and done from then on. In the order in which it can be done. */
const taskChanges = (plane: Plane, node: string): readonly (() => Promise<Reply>)[] => {
  const { iss, aud, sub, jwks } = cluster()
  const issuer = { name: 'east', iss, aud, sub, jwks: jwks(), types: ['service'], vclusters: ['training'] }
  return [
    () => plane.api('POST', '/v1/tasks', someTask(node)),
    () => plane.api('PATCH', '/v1/domain', { set: { 'tasks.run': true } }),
    () => plane.api('PATCH', '/v1/vclusters/training', { set: { 'tasks.types': ['service'] } }),
    () => plane.api('POST', '/v1/worker-issuers', issuer),
    () => plane.api('POST', '/v1/task-signers/rotate', { how: 'now' }),
  ]
}

const jwkOfProvisioner = (): string =>
  JSON.stringify({
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
    kid: 'muster',
  })

/** The same for outside issuers. */
const issuerChanges = (plane: Plane): readonly (() => Promise<Reply>)[] => {
  const { pem } = outsideRoot('Corp Root', Date.now())
  const corp = {
    ...{ name: 'corp', url: 'https://127.0.0.1:9', server_roots: [pem], roots: [pem] },
    step_ca: { provisioner: 'muster', renewal_provisioner: 'muster-renewal' },
    secrets: { provisioner_key: jwkOfProvisioner() },
  }
  return [
    () => plane.api('PATCH', '/v1/profiles/gpu-cloud', { set: { 'certificate.minLifetimeMs': 3_600_000 } }),
    () => plane.api('POST', '/v1/issuers', corp),
  ]
}

/** What the schema of the release before has no place for. */
const newerChanges = (plane: Plane, node: string, before: number): readonly (() => Promise<Reply>)[] => [
  ...(before < kindsSince.task.schema ? taskChanges(plane, node) : []),
  ...(before < kindsSince['outside-issuer'].schema ? issuerChanges(plane) : []),
]

type Beside = {
  readonly release: NamedRelease
  readonly command: string
  readonly database: TestDatabase
  readonly old: Plane
  readonly plane: Plane
  /** As old as `old`. */
  readonly other: Plane
}

/** The schema stays the one of the release before until its last replica has stopped, and that replica is restarted meanwhile. */
const upgradedAfterLast = async (t: Scope, beside: Beside): Promise<void> => {
  const { release, command, database, old, plane, other } = beside
  const { env } = database
  const before = schemaOf(release.version)
  const isGated = before < newestSchema
  const storeVerb = (...args: string[]) => plane.musterWith({ env }, 'store', ...args, '--store', 'postgres')
  const setNew = () => plane.api('PATCH', '/v1/profiles/hpc-diskless', { set: { probeSilenceMs: 60_000 } })
  assert.equal(await schemaIn(database), before)

  await old.kill9()
  const again = await old.restart({ command })
  // Until now its lease held back the upgrade: a busy machine may take longer for the restart than the killed one's lasts.
  await other.stop()
  await again.api('POST', '/v1/nodes', { id: 'registered-at-old' })
  assert.equal(await membershipOf(plane, 'registered-at-old'), 'registered')

  // An agent never forgets that the plane is marked, and would refuse the replica that is not.
  const isMarked = async (node: string): Promise<boolean> => joinIn(await plane.token('--node', node)).marked
  assert.equal(await isMarked('asked-before'), !isGated)
  const kept = startAgent(t, { join: await plane.token('--node', 'kept') })
  await toBeConnected(plane, 'kept')
  // Its row names the last three keys at most, and all of them are its own for ever.
  const renewals = isGated ? 3 : 1
  for (let renewed = 0; renewed < renewals; renewed++) await renewNow(plane, kept.state, 'kept')
  const made = await plane.api('POST', '/v1/vclusters', { name: 'training' })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const changes = newerChanges(plane, 'kept', before)
  for (const change of changes) {
    const { status, body } = await change()
    assert.deepEqual([status, body.code], [409, 'UPGRADE_UNFINISHED'], JSON.stringify(body))
  }
  assert.deepEqual(succeeded(await plane.api('GET', '/v1/issuer-migrations')).migrations, [])
  const noTasks = await plane.api('GET', '/v1/tasks')
  assert.deepEqual([noTasks.status, noTasks.body.tasks], [200, []], JSON.stringify(noTasks.body))
  const first = await setNew()
  const status = JSON.parse((await storeVerb('status', '-o', 'json')).stdout) as {
    schema: number
    upgrade_waits_for: string[]
  }
  const { warnings } = (await plane.api('GET', '/readyz')).body as { warnings: string[] }
  const byHand = await storeVerb('migrate')
  if (before < fieldsSince.profile.probeSilenceMs)
    assert.deepEqual([first.status, first.body.code], [409, 'UPGRADE_UNFINISHED'], JSON.stringify(first.body))
  else assert.equal(first.status, 200, JSON.stringify(first.body))
  assert.equal(status.schema, before)
  if (isGated) {
    assert.ok(String(status.upgrade_waits_for).includes(`(${release.version})`), String(status.upgrade_waits_for))
    assert.match(String(warnings), /the upgrade is unfinished: /)
    assert.ok(String(warnings).includes(`(${release.version})`), String(warnings))
    assert.deepEqual([byHand.code, /UPGRADE_UNFINISHED/.test(byHand.stderr)], [75, true], byHand.stderr)
  } else {
    assert.deepEqual([status.upgrade_waits_for, warnings], [[], []])
    assert.equal(byHand.code, 0, byHand.stderr)
  }

  await again.stop()
  await eventually('the schema to be the newest', async () => (await schemaIn(database)) === newestSchema, {
    withinMs: 60_000,
  })
  await eventually('the new setting to be accepted', async () => (await setNew()).status === 200, { withinMs: 30_000 })
  for (const change of changes) {
    // The leader makes the first signer a moment after the upgrade.
    const done = async () => {
      const { status, body } = await change()
      if (status >= 300) throw new Error(JSON.stringify(body))
      return true
    }
    await eventually('what is new to be accepted', done, { withinMs: 30_000 })
  }
  const unclaimed = `SELECT doc FROM certificate
    WHERE node IS NOT NULL AND NOT EXISTS (SELECT FROM key_claim WHERE key_claim.key = certificate.doc::json ->> 'spki')`
  assert.deepEqual(await rowsIn(database, unclaimed), [])
  assert.equal(await isMarked('asked-after'), true)
  await renewNow(plane, kept.state, 'kept')
  assert.doesNotMatch(String((await plane.api('GET', '/readyz')).body.warnings), /upgrade/)
  const verified = await plane.muster('journal', 'verify')
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
}

const rowsIn = async (database: TestDatabase, text: string) => {
  const connection = await database.connect()
  const { rows } = await connection.run({ name: '', text })
  await connection.end()
  return rows
}
const schemaIn = async (database: TestDatabase): Promise<unknown> =>
  (await rowsIn(database, 'SELECT version FROM muster_schema'))[0]?.['version']

/** The newest that a release knows: a store has it that no later release has upgraded. */
const schemaOf = (release: string): number => {
  const schemas = Object.keys(releaseOfSchema).map(Number) as (keyof typeof releaseOfSchema)[]
  return Math.max(...schemas.filter((schema) => knowsSchema(release, schema)))
}

test('a plane runs on the schemas of the releases that it is tried beside, and on no older one', () => {
  assert.equal(oldestSchema, Math.min(...previousReleases().map(({ version }) => schemaOf(version))))
})

for (const release of previousReleases())
  describe(`this release beside ${release.version}`, { concurrency: 2 }, () => besideRelease(release))
