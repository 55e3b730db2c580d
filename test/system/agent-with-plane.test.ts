// The agent and the plane, each in a process of its own.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { agentExitCodes } from '#agent/core/outcome.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { eventually } from '../process/eventually.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

type NodeLine = {
  membership: string
  epoch: number
  channel_open: boolean
  conditions: object[]
  certificates: { serial: string; slot: string }[]
}

const nodeOf = async (plane: Plane, id: string): Promise<NodeLine> =>
  (await plane.api('GET', `/v1/nodes/${id}`)).body as NodeLine

const connected = (plane: Plane, id: string): Promise<NodeLine> =>
  eventually(
    `${id} to be active with a channel`,
    async () => {
      const node = await nodeOf(plane, id)
      return node.membership === 'active' && node.channel_open ? node : null
    },
    { withinMs: 20_000 },
  )

const statusFile = (agent: Agent): StatusFile =>
  JSON.parse(fs.readFileSync(path.join(agent.state, 'status.json'), 'utf8')) as StatusFile

const hardwareFile = (t: TestContext, mac: string): string => {
  const file = path.join(tempFolder(t), 'hardware.json')
  fs.writeFileSync(file, JSON.stringify({ macs: [mac], bmc_serial: null }))
  return file
}

describe('an agent and a plane, each in a process of its own', { concurrency: 3 }, () => {
  test('a node enrolls with a token, survives restarts of either side with the same certificate, and stops cleanly', async (t) => {
    const plane = await startPlane(t)
    const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001') })
    const first = await connected(plane, 'gpu-001')
    assert.equal(await agent.stop().then(({ code }) => code), 0)

    const again = agent.restart()
    await connected(plane, 'gpu-001')
    const { nodeUrl } = plane
    await plane.kill9()
    const plane2 = await plane.restart()
    assert.equal(plane2.nodeUrl, nodeUrl)
    const last = await connected(plane2, 'gpu-001')
    assert.deepEqual(
      last.certificates.map(({ serial }) => serial),
      first.certificates.map(({ serial }) => serial),
    )
    const status = await eventually('a status that says so', async () => {
      const said = await again.status()
      return said.code === 0 ? said : null
    })
    assert.match(status.stdout, /is connected to wss:/)
  })

  test('a revoked node: its agent ends with the exit code that keeps systemd from starting it again', async (t) => {
    const plane = await startPlane(t)
    const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001') })
    await connected(plane, 'gpu-001')
    const revoked = await plane.muster('node', 'revoke', 'gpu-001', '--reason', 'compromised')
    assert.equal(revoked.code, 0, revoked.stderr)
    assert.equal((await agent.ended).code, agentExitCodes.revoked)
    assert.match(agent.stderr(), /NODE_REVOKED|CLIENT_CERT_DENIED/)
  })

  test('a used token ends a second agent, which says what to do', async (t) => {
    const plane = await startPlane(t)
    const join = await plane.token('--node', 'gpu-001')
    startAgent(t, { join })
    await connected(plane, 'gpu-001')
    const second = startAgent(t, { join })
    assert.equal((await second.ended).code, agentExitCodes.refused)
    assert.match(second.stderr(), /TOKEN_USED/)
    assert.doesNotMatch(second.stderr(), /enroll_/)
  })

  test('R-050, ruling 23: under a profile of Ed25519 keys a machine enrolls, and again with a damaged certificate while its node is active', async (t) => {
    const plane = await startPlane(t)
    const made = await plane.muster('profile', 'create', 'ed', '--from', 'gpu-cloud', 'certificate.keyTypes=ed25519')
    assert.equal(made.code, 0, made.stderr)
    const join = await plane.token('--node', 'gpu-001', '--profile', 'ed')
    const later = await plane.token('--node', 'gpu-001')
    const agent = startAgent(t, { join, args: ['--recovery', 'none'] })
    await connected(plane, 'gpu-001')
    await agent.stop()
    const file = path.join(agent.state, 'identity.json')
    const kept = JSON.parse(fs.readFileSync(file, 'utf8')) as { identity: { current: { chainPem: string } } }
    kept.identity.current.chainPem = 'damaged'
    fs.writeFileSync(file, JSON.stringify(kept))
    agent.restart({ join: later })
    const again = await eventually('a second epoch', async () => {
      const node = await connected(plane, 'gpu-001')
      return node.epoch === 2 ? node : null
    })
    assert.deepEqual(again.conditions, [])
  })

  test('a short-lived certificate is renewed over and over, each with a channel of its own', async (t) => {
    const plane = await startPlane(t)
    const made = await plane.muster('profile', 'create', 'brief', '--from', 'gpu-cloud', 'certificate.lifetimeMs=15s')
    assert.equal(made.code, 0, made.stderr)
    const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001', '--profile', 'brief') })
    await connected(plane, 'gpu-001')
    const serials = new Set<string>()
    await eventually(
      'two renewals',
      () => {
        const { certificate, channel } = statusFile(agent)
        if (certificate !== null && channel.open) serials.add(certificate.serial)
        return serials.size >= 3
      },
      { withinMs: 90_000, everyMs: 200 },
    )
    const node = await connected(plane, 'gpu-001')
    assert.ok(node.certificates.some(({ serial }) => serials.has(serial)))
  })

  test('a diskless node that reboots while its old channel is blackholed comes back after the silence of its profile (P1)', async (t) => {
    const plane = await startPlane(t)
    const mac = '52:54:00:00:00:07'
    const file = hardwareFile(t, mac)
    const registered = await plane.muster('node', 'enroll', 'hpc-7', '--mac', mac, '--profile', 'hpc-diskless')
    assert.equal(registered.code, 0, registered.stderr)
    const set = await plane.muster('profile', 'set', 'hpc-diskless', 'probeSilenceMs=9s')
    assert.equal(set.code, 0, set.stderr)
    const join = `muster1,${plane.nodeUrl},${plane.domain},sha256:${plane.rootFingerprint},-`
    const agent = startAgent(t, { join, args: ['--hardware-file', file] })
    await connected(plane, 'hpc-7')
    assert.deepEqual(
      fs.readdirSync(agent.state).filter((name) => name.startsWith('identity')),
      [],
    )
    const before = (await nodeOf(plane, 'hpc-7')).certificates[0]?.serial
    agent.signal('SIGSTOP')
    startAgent(t, { join, args: ['--hardware-file', file] })
    await eventually(
      'the rebooted node to be back',
      async () => {
        const node = await nodeOf(plane, 'hpc-7')
        return node.channel_open && node.certificates[0]?.serial !== before
      },
      { withinMs: 30_000 },
    )
    agent.signal('SIGCONT')
  })

  test('two agents do not share a state folder', async (t) => {
    const plane = await startPlane(t)
    const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001') })
    await connected(plane, 'gpu-001')
    const second = startAgent(t, { state: agent.state })
    assert.equal((await second.ended).code, agentExitCodes.misconfigured)
    assert.match(second.stderr(), /Another agent \(process \d+\)/)
  })

  test('an agent without recovery whose certificate expired while it was off stays up, says so, and comes back with a new join string', async (t) => {
    const plane = await startPlane(t)
    const made = await plane.muster('profile', 'create', 'brief', '--from', 'gpu-cloud', 'certificate.lifetimeMs=5s')
    assert.equal(made.code, 0, made.stderr)
    const file = path.join(tempFolder(t), 'join')
    fs.writeFileSync(file, await plane.token('--node', 'gpu-001', '--profile', 'brief'))
    const args = ['--join-file', file, '--recovery', 'none']
    const agent = startAgent(t, { args })
    await connected(plane, 'gpu-001')
    await agent.stop()
    const { not_after } = statusFile(agent).certificate ?? assert.fail('no certificate')
    await eventually('its end', () => Date.now() > Date.parse(not_after) + 1000, { withinMs: 15_000 })
    const again = agent.restart()
    const codes = (): string[] => statusFile(again).troubles.map(({ code }) => code)
    await eventually('the status to say so', () => codes().includes('no_way_back'), { withinMs: 15_000 })
    assert.match(again.stderr(), /CLIENT_CERT_EXPIRED/)
    fs.writeFileSync(file, await plane.token('--node', 'gpu-001', '--replace'))
    await connected(plane, 'gpu-001')
    assert.equal(fs.existsSync(file), false)
  })
})
