// Must-show 6: an overlay with real services on a real agent, whose plane is stopped, restarted and has the node moved. What
// runs is what should, at each step.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import { joinMember, untilConnected } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { heart, isAlive, type Heart } from '../process/heart.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const called = async (plane: Plane, method: 'POST' | 'PATCH', where: string, body: object): Promise<void> => {
  const { status, body: answer } = await plane.api(method, where, body)
  assert.ok(status < 300, `${method} ${where}: ${status} ${JSON.stringify(answer)}`)
}

const beatsAgain = async (...hearts: readonly Heart[]): Promise<number[]> => {
  const before = hearts.map((it) => it.beats())
  await eventually('every heart to beat', () => hearts.every((it, at) => it.beats() > (before[at] ?? 0) + 1), {
    withinMs: 60_000,
  })
  return hearts.map((it) => it.pid() ?? 0)
}

const stopped = (...hearts: readonly Heart[]): Promise<true> =>
  eventually('these to have ended', () => hearts.every((it) => !isAlive(it.pid())), { withinMs: 60_000 })

test('services are what they should be: assigned, without a plane, restarted without one, moved, changed, unassigned, revoked', async (t) => {
  const folder = tempFolder(t)
  const [clock, one, two, three] = ['clock', 'one', 'two', 'three'].map((name) => heart(folder, name)) as [
    Heart,
    Heart,
    Heart,
    Heart,
  ]
  const service = (name: string, it: Heart): object => ({ name, command: it.command })
  const motd = { path: 'etc/motd', mode: 0o640, content: 'you are in A\n' }
  const plane = await startPlane(t)
  await called(plane, 'PATCH', '/v1/domain', { set: { 'maintenance.timeSync': service('clock', clock) } })
  await called(plane, 'POST', '/v1/vclusters', {
    name: 'a',
    overlay: { files: [motd], services: [service('one', one), service('two', two)] },
  })
  await called(plane, 'POST', '/v1/vclusters', {
    name: 'b',
    overlay: {
      files: [{ ...motd, content: 'you are in B\n' }],
      services: [service('two', two), { name: 'three', command: [...three.command, '{overlay}/etc/motd'] }],
    },
  })

  const agent = await joinMember(t, plane, { id: 'gpu-001', profile: 'gpu-cloud' })
  await untilConnected([agent])
  const overlay = path.join(agent.state, 'overlay', 'current')
  const [timeSync] = await beatsAgain(clock)
  assert.deepEqual(
    [one, two, three].map((it) => it.beats()),
    [0, 0, 0],
    'in maintenance mode nothing else runs',
  )

  await t.test('assigned: its services run beside time sync, its files are there', async () => {
    await called(plane, 'POST', '/v1/nodes/gpu-001/assign', { to: 'a' })
    await beatsAgain(one, two)
    assert.equal(fs.readFileSync(path.join(overlay, 'etc/motd'), 'utf8'), 'you are in A\n')
    assert.equal(fs.statSync(path.join(overlay, 'etc/motd')).mode & 0o777, 0o640)
    const { MUSTER_NODE, MUSTER_VCLUSTER, MUSTER_OVERLAY } = one.environment()
    assert.deepEqual([MUSTER_NODE, MUSTER_VCLUSTER, MUSTER_OVERLAY], ['gpu-001', 'a', overlay])
    await eventually('the plane to know what runs', async () => {
      const { body } = await plane.api('GET', '/v1/nodes/gpu-001')
      return JSON.stringify(body).includes('"one"') && JSON.stringify(body).includes('"state":"running"')
    })
    assert.equal(clock.pid(), timeSync, 'time sync was not restarted for it')
  })

  const before = [clock, one, two].map((it) => it.pid())
  await t.test('the plane is stopped: all of them go on', async () => {
    await plane.stop()
    await eventually('the agent to notice', () => readStatusFile(agent.state)?.channel.open === false)
    assert.deepEqual(await beatsAgain(clock, one, two), before)
  })

  let running = agent as { stop: typeof agent.stop; kill9: typeof agent.kill9; restart: typeof agent.restart }
  await t.test(
    'the agent is stopped and they end; started again, without a plane, and they run again from disk',
    async () => {
      await agent.stop()
      await stopped(clock, one, two)
      running = agent.restart()
      const again = await beatsAgain(clock, one, two)
      assert.ok(again.every((pid, at) => pid !== before[at]))
      assert.equal(readStatusFile(agent.state)?.channel.open, false)
      await eventually('the status to say so', () => {
        const status = readStatusFile(agent.state)?.overlay
        return status?.applied === true && status.services.map(({ name }) => name).join() === 'clock,one,two'
      })
    },
  )

  await t.test('the agent is killed: they go on, and the next one takes them over', async () => {
    const orphans = [clock, one, two].map((it) => it.pid())
    await running.kill9()
    const next = agent.restart()
    running = next
    await eventually('the next agent to know of them', () => {
      const status = readStatusFile(agent.state)
      const pids = status?.overlay?.services.map(({ pid }) => pid) ?? []
      return status?.pid === next.pid && pids.join() === orphans.join()
    })
    assert.deepEqual(await beatsAgain(clock, one, two), orphans)
  })

  const [, , sameTwo] = [clock, one, two].map((it) => it.pid())
  const again = await plane.restart()
  await t.test(
    'the plane is back and moves the node: one ends, two is not touched, three runs with the new files',
    async () => {
      await untilConnected([agent])
      await called(again, 'POST', '/v1/nodes/gpu-001/move', { to: 'b' })
      await stopped(one)
      await beatsAgain(two, three)
      assert.equal(two.pid(), sameTwo)
      assert.equal(fs.readFileSync(path.join(overlay, 'etc/motd'), 'utf8'), 'you are in B\n')
    },
  )

  await t.test('the files of the vCluster change: only the service that names them is restarted', async () => {
    const former = three.pid()
    const services = [service('two', two), { name: 'three', command: [...three.command, '{overlay}/etc/motd'] }]
    const overlayOfB = { files: [{ ...motd, content: 'B has changed\n' }], services }
    await called(again, 'PATCH', '/v1/vclusters/b', { overlay: overlayOfB })
    await eventually('three to be another process', () => three.pid() !== former && isAlive(three.pid()))
    assert.equal(fs.readFileSync(path.join(overlay, 'etc/motd'), 'utf8'), 'B has changed\n')
    assert.deepEqual([two.pid(), isAlive(sameTwo ?? null)], [sameTwo, true])
  })

  const keptTime = clock.pid()
  await t.test('unassigned: only time sync is left, and it was never touched', async () => {
    await called(again, 'POST', '/v1/nodes/gpu-001/unassign', {})
    await stopped(two, three)
    await beatsAgain(clock)
    assert.equal(clock.pid(), keptTime)
    await eventually('the files to be gone', () => fs.readdirSync(overlay).length === 0)
    await eventually('the status to say so', () => readStatusFile(agent.state)?.overlay?.services.length === 1)
  })

  await t.test('revoked: nothing runs, also not after a restart', async () => {
    await called(again, 'POST', '/v1/nodes/gpu-001/revoke', { reason: 'key_compromise' })
    await stopped(clock)
    const beats = clock.beats()
    await eventually('the agent to have ended', () => readStatusFile(agent.state)?.phase === 'stopped')
    const once = agent.restart()
    await once.ended
    assert.equal(clock.beats(), beats)
  })
})
