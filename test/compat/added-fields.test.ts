// What 0.4 has added, beside the release before: what one side does not know is neither sent to it nor missed by it, and a command
// that asks for it gets a sentence.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { startedCommand } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import type { Ran } from '../process/run-muster.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { commandOf, previousReleases, type NamedRelease } from './previous-release.ts'

const release = previousReleases()[0] as NamedRelease
const commandBefore = commandOf(release)

const nodeOf = async (plane: Plane, id: string): Promise<Json> => (await plane.api('GET', `/v1/nodes/${id}`)).body

const toBeConnected = (plane: Plane, id: string) =>
  eventually(
    `${id} to be active and connected`,
    async () => {
      const { membership, channel_open: open } = await nodeOf(plane, id)
      return membership === 'active' && open === true
    },
    { withinMs: 30_000 },
  )

const renewed = async (plane: Plane, state: string, id: string): Promise<void> => {
  const serial = async () => (await nodeOf(plane, id)).certificates[0].serial
  const before = await serial()
  const { code, stderr } = await plane.muster('agent', 'renew', '--now', '--state', state)
  assert.equal(code, 0, stderr)
  await eventually(`${id} to have another certificate`, async () => (await serial()) !== before)
}

/** What an operator does every day, and nothing that only one of the releases has. */
const everyday: readonly (readonly string[])[] = [
  ['node', 'list'],
  ['node', 'show', 'gpu-001'],
  ['node', 'explain', 'gpu-001'],
  ['token', 'create', '--node', 'gpu-009'],
  ['token', 'list'],
  ['profile', 'list'],
  ['profile', 'show', 'meshed'],
  ['profile', 'set', 'meshed', 'certificate.lifetimeMs=12h'],
  ['vcluster', 'list'],
  ['vcluster', 'show', 'blue'],
  ['vcluster', 'set', 'blue', 'description=training'],
  ['domain', 'show'],
  ['ca', 'show'],
  ['alert', 'list'],
]
const everydayWorks = async (run: (...args: string[]) => Promise<Ran>): Promise<void> => {
  for (const args of everyday) {
    const { code, stderr } = await run(...args)
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
  }
}

const refusedBy = async ({ muster }: Plane, words: RegExp, ...args: string[]): Promise<void> => {
  const { code, stderr } = await muster(...args)
  assert.notEqual(code, 0, args.join(' '))
  assert.match(stderr, words, args.join(' '))
}

const document = `name: blue
files: [{path: etc/app.conf, content: x}]
services: [{name: app, command: [/bin/sleep, infinity]}]
`

test(`agents, commands and a store of ${release.version}, with outputs, overlays and names of this release`, async (t) => {
  const command = await commandBefore(t)
  if (command === null) return
  const folder = tempFolder(t)
  const written = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  const published = path.join(folder, 'published')

  // The plane is of the release before.
  const old = await startPlane(t, { command })
  const oldAgent = startAgent(t, { command, join: await old.token('--node', 'gpu-001') })
  const newAgent = startAgent(t, { join: await old.token('--node', 'gpu-002'), args: ['--publish', published] })
  assert.equal((await old.muster('profile', 'create', 'meshed', '--from', 'gpu-cloud')).code, 0)
  const applied = await old.muster('vcluster', 'apply', written('blue.yaml', document))
  assert.equal(applied.code, 0, applied.stderr)
  await Promise.all(['gpu-001', 'gpu-002'].map((id) => toBeConnected(old, id)))
  const assigned = await old.muster('node', 'assign', 'gpu-002', '--to', 'blue')
  assert.equal(assigned.code, 0, assigned.stderr)
  await everydayWorks(old.muster)
  await refusedBy(old, /PROFILE_INVALID[\s\S]*outputs/, 'profile', 'set', 'meshed', 'outputs=[{"name":"probe"}]')
  await refusedBy(old, /outputs/, 'vcluster', 'set', 'blue', 'outputs=[{"name":"probe"}]')
  const checked = written('checked.yaml', `${document}checks: [{name: disk, command: [/bin/true]}]\n`)
  await refusedBy(old, /checks/, 'vcluster', 'apply', checked)
  await refusedBy(old, /reason_code/, 'node', 'revoke', 'gpu-001', '--reason', 'x', '--reason-code', 'superseded')
  await refusedBy(old, /compare the versions/i, 'node', 'names', 'add', 'gpu-001', 'db.example')
  await eventually('its services to be reported', async () => (await nodeOf(old, 'gpu-002')).overlay?.applied === true)
  await renewed(old, newAgent.state, 'gpu-002')
  assert.equal(newAgent.stderr().split('The plane has no outputs').length, 2, 'said once')
  // Nothing that it sent was refused, on the way in or over the channel.
  assert.doesNotMatch((await old.muster('journal', 'list', '--node', 'gpu-002')).stdout, /refused/)
  const { details }: Json = JSON.parse((await newAgent.status()).stdout)
  assert.deepEqual(details.troubles, [])
  await old.stop()

  // The same store, opened by this release.
  const plane = await old.restart({ command: startedCommand })
  const before = (...args: string[]) => plane.musterWith({ command }, ...args)
  await Promise.all(['gpu-001', 'gpu-002'].map((id) => toBeConnected(plane, id)))
  const { body: blue } = await plane.api('GET', '/v1/vclusters/blue')
  assert.deepEqual([blue.description, blue.outputs, blue.overlay.checks], ['training', [], []])
  assert.equal((await plane.api('GET', '/v1/profiles/meshed')).body.certificate.lifetimeMs, 43_200_000)
  await everydayWorks(plane.muster)
  await everydayWorks(before)

  const set = await plane.muster('profile', 'set', 'gpu-cloud', 'outputs=[{"name":"probe"}]')
  assert.equal(set.code, 0, set.stderr)
  await eventually('the new agent to have put it in place', () => fs.existsSync(path.join(published, 'probe')), {
    withinMs: 30_000,
  })
  const fetched = async (id: string) =>
    (await plane.api('GET', `/v1/programs?node=${id}`)).body.programs.map(({ output }: Json) => output)
  assert.deepEqual([await fetched('gpu-001'), await fetched('gpu-002')], [[], ['probe']])
  await renewed(plane, oldAgent.state, 'gpu-001')
  assert.deepEqual((await nodeOf(plane, 'gpu-001')).conditions, [])
  for (const id of ['gpu-001', 'gpu-002']) assert.equal((await before('node', 'show', id)).code, 0)
  const unknown = await before('profile', 'show', 'gpu-cloud')
  assert.match(unknown.stderr, /Compare the versions/)
})
