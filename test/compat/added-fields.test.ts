// What this release has added, beside the release before, and what 0.7 has added, beside 0.6: what one side does not know is neither sent to
// it nor missed by it, and a command that asks for it gets a sentence.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { startedCommand } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import type { Ran } from '../process/run-muster.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { commandOf, releaseBefore, releaseNamed, type NamedRelease } from './previous-release.ts'

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
  ['node', 'bundle', 'gpu-010', '--this-machine', '--format', 'script'],
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

const document = `name: blue
files: [{path: etc/app.conf, content: x}]
services: [{name: app, command: [/bin/sleep, infinity]}]
`

const setUp = 'apiVersion: muster/v1\nprofiles: [{name: edge}]\n'

const besideRelease = (release: NamedRelease): void => {
  const commandBefore = commandOf(release)

  test(`agents, commands and a store of ${release.version}, with what has been added since`, async (t) => {
    const command = await commandBefore(t)
    if (command === null) return
    const folder = tempFolder(t)
    const written = (name: string, text: string): string => {
      fs.writeFileSync(path.join(folder, name), text)
      return path.join(folder, name)
    }
    const fleet = written('fleet.yaml', setUp)

    // The plane is of the release before.
    const old = await startPlane(t, { command })
    const oldAgent = startAgent(t, { command, join: await old.token('--node', 'gpu-001') })
    const newAgent = startAgent(t, { join: await old.token('--node', 'gpu-002') })
    assert.equal((await old.muster('profile', 'create', 'meshed', '--from', 'gpu-cloud')).code, 0)
    const applied = await old.muster('vcluster', 'apply', written('blue.yaml', document))
    assert.equal(applied.code, 0, applied.stderr)
    await Promise.all(['gpu-001', 'gpu-002'].map((id) => toBeConnected(old, id)))
    const assigned = await old.muster('node', 'assign', 'gpu-002', '--to', 'blue')
    assert.equal(assigned.code, 0, assigned.stderr)
    await everydayWorks(old.muster)
    const exported = await old.muster('export')
    assert.equal(exported.code, 0, exported.stderr)
    assert.equal((await old.muster('apply', '-f', fleet, '--yes')).code, 0)
    assert.match((await old.muster('top', '--once')).stdout, /2 active/)
    await eventually(
      'its services to be reported',
      async () => (await nodeOf(old, 'gpu-002')).overlay?.applied === true,
    )
    await renewed(old, newAgent.state, 'gpu-002')
    // Nothing that it sent was refused, on the way in or over the channel.
    assert.doesNotMatch((await old.muster('journal', 'list', '--node', 'gpu-002')).stdout, /refused/)
    const { details }: Json = JSON.parse((await newAgent.status()).stdout)
    assert.deepEqual(details.troubles, [])
    await old.stop()

    // The same store, opened by this release.
    const plane = await old.restart({ command: startedCommand })
    const before = (...args: string[]) => plane.musterWith({ command }, ...args)
    await Promise.all(['gpu-001', 'gpu-002'].map((id) => toBeConnected(plane, id)))
    assert.equal((await plane.api('GET', '/v1/vclusters/blue')).body.description, 'training')
    assert.equal((await plane.api('GET', '/v1/profiles/meshed')).body.certificate.lifetimeMs, 43_200_000)
    await everydayWorks(plane.muster)
    await everydayWorks(before)
    // The command of the release before shows what it knows.
    for (const args of [
      ['domain', 'show'],
      ['vcluster', 'show', 'blue'],
      ['node', 'show', 'gpu-002'],
      ['journal', 'list'],
    ]) {
      const { code, stderr } = await before(...args)
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
    }
    await renewed(plane, oldAgent.state, 'gpu-001')
    assert.deepEqual((await nodeOf(plane, 'gpu-001')).conditions, [])
    for (const id of ['gpu-001', 'gpu-002']) assert.equal((await before('node', 'show', id)).code, 0)
  })
}

describe('this release beside', { concurrency: 2 }, () => {
  besideRelease(releaseBefore())
  besideRelease(releaseNamed('0.6.0'))
})
