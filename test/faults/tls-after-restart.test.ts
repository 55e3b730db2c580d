// The first moments of a plane that was killed and started again: a node that connects as soon as the port accepts is
// judged by everything that was decided before.

import assert from 'node:assert/strict'
import * as net from 'node:net'
import { test } from 'node:test'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall, type NodeTarget } from '../process/node-call.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'

const rounds = process.env['MUSTER_LONG'] === '1' ? 20 : 3
const firstMs = 100
const callersEach = 6

type Standing = { readonly node: RawNode; readonly expected: string }

/** Nodes in every standing a certificate can have, one that is fine among them: a plane that refuses all proves nothing. */
const standings = async (plane: Plane): Promise<Standing[]> => {
  const made = await plane.api('POST', '/v1/profiles', { name: 'brief', set: { 'certificate.lifetimeMs': 1000 } })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const ended = rawNode(await plane.target())
  await ended.enrollByToken(await secretFor(plane, { node: 'expired', profile: 'brief' }))
  const names = ['fine', 'revoked', 'quarantined', 'released', 'replaced'] as const
  const [fine, revoked, quarantined, released, replaced] = await Promise.all(names.map((id) => activeNode(plane, id)))
  assert.ok(fine && revoked && quarantined && released && replaced)
  for (const [id, action] of [
    ['revoked', 'revoke'],
    ['quarantined', 'quarantine'],
    ['released', 'quarantine'],
    ['released', 'release'],
  ] as const) {
    const body = action === 'release' ? {} : { reason: 'compromised' }
    assert.equal((await plane.api('POST', `/v1/nodes/${id}/${action}`, body)).status, 200, `${action} ${id}`)
  }
  const successor = rawNode(await plane.target())
  await successor.enrollByToken(await secretFor(plane, { node: 'replaced', replace: true }))
  await eventually('the short certificate to expire', async () => (await ended.confirm()).status === 401)
  return [
    { node: fine, expected: '200' },
    { node: ended, expected: '401 CLIENT_CERT_EXPIRED' },
    { node: revoked, expected: '403 NODE_REVOKED' },
    { node: quarantined, expected: '403 NODE_QUARANTINED' },
    { node: released, expected: '403 CLIENT_CERT_DENIED' },
    { node: replaced, expected: '403 CLIENT_CERT_DENIED' },
  ]
}

const secretFor = async (plane: Plane, asked: object): Promise<string> =>
  (await plane.api('POST', '/v1/tokens', asked)).body.secret

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' })
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })

type Answered = { readonly standing: Standing; readonly answer: string; readonly connectedMs: number }

/** Calls until the first moments are over, and once in any case. */
const callAtOnce = async (target: NodeTarget, standing: Standing, acceptedMs: number): Promise<Answered[]> => {
  const answers: Answered[] = []
  const { node } = standing
  do {
    const connectedMs = performance.now() - acceptedMs
    const { status, body } = await nodeCall(target, node.identity(), 'POST', `/v1/nodes/${node.id()}/confirm`, {})
    answers.push({ standing, answer: `${status} ${body.code ?? ''}`.trim(), connectedMs })
  } while (performance.now() - acceptedMs < firstMs)
  return answers
}

test(`in its first ${firstMs} ms after a kill a plane refuses what it refused before, and nothing else`, async (t) => {
  let plane = await startPlane(t)
  const target = { ...(await plane.target()), url: `https://127.0.0.1:${plane.nodePort}` }
  const all = await standings(plane)
  const answers: Answered[] = []
  for (let round = 0; round < rounds; round++) {
    await plane.kill9()
    const restarted = plane.restart()
    await eventually('the port to accept', () => accepts(plane.nodePort), { withinMs: 30_000, everyMs: 1 })
    const acceptedMs = performance.now()
    // In turn, so that the first call of each node is among the earliest on a slow machine too.
    const callers = Array.from({ length: callersEach }, () => all).flat()
    const calls = callers.map((standing) => callAtOnce(target, standing, acceptedMs))
    const channels = all.map(({ node }) => openRawChannel(target, node.identity(), node.id()))
    answers.push(...(await Promise.all(calls)).flat())
    for (const [at, channel] of (await Promise.all(channels)).entries()) {
      const answer = 'status' in channel ? `${channel.status} ${channel.body.code}` : '200'
      assert.equal(answer, all[at]?.expected, `the channel of ${all[at]?.node.id()}`)
      if ('destroy' in channel) channel.destroy()
    }
    plane = await restarted
  }
  for (const { standing, answer } of answers) assert.equal(answer, standing.expected, standing.node.id())
  const early = answers.filter(({ connectedMs }) => connectedMs < firstMs)
  for (const standing of all)
    assert.ok(
      early.some((one) => one.standing === standing),
      standing.node.id(),
    )
  t.diagnostic(`${early.length} calls begun in the first ${firstMs} ms, ${answers.length} in all`)
})
