// R-039, and the stop to all issuance: an authority whose key was stolen is dropped in front of ten machines and two real
// agents. What it signed opens nothing any more, every node comes back by itself, and none is taken for another.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { identityFile } from '#agent/state/credential-store.ts'
import { readFileIfAny } from '#platform/files.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { eventually } from '../process/eventually.ts'
import type { Reply } from '../process/operator-call.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { recoverableNode, type RecoverableNode } from '../process/raw-recovery.ts'
import { shared } from '../process/shared-plane.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { openTlsConnection } from '../process/tls-connection.ts'

const plane = shared<Plane>((scope) => startPlane(scope))
const machines = 10

const code = ({ status, body }: Pick<Reply, 'status' | 'body'>): string => `${status} ${body.code ?? ''}`.trim()

const issuerOf = ({ chainPem }: { readonly chainPem: string }): string => {
  const leaf = parseCertificate(new X509Certificate(chainPem).raw)
  assert(leaf.kind === 'certificate' && leaf.authorityKeyId !== null)
  return leaf.authorityKeyId
}

const countIn = (counter: string): number => parseStatement('counter', counter)?.value.counter ?? assert.fail(counter)

const nodeNow = async (id: string) => (await plane().api('GET', `/v1/nodes/${id}`)).body
const connected = (id: string, epoch: number): Promise<unknown> =>
  eventually(
    `${id} to have a channel in epoch ${epoch}`,
    async () => {
      const { epoch: now, channel_open: open, membership } = await nodeNow(id)
      return now === epoch && open === true && membership === 'active'
    },
    { withinMs: 60_000 },
  )

type Entry = {
  type: string
  correlation: string
  node: string | null
  issuer: string | null
  body: Record<string, unknown>
}

const journal = async (query: string): Promise<Entry[]> => {
  const { body } = await plane().api('GET', `/v1/journal?limit=1000&${query}`)
  return body.entries.map(({ entry }: { entry: Entry }) => entry)
}

const heldBy = (
  agent: Agent,
): { epoch: number; counter: string; current: { chainPem: string }; withdrawnIssuers: string[] } =>
  JSON.parse(readFileIfAny(identityFile(agent.state)) ?? 'null').identity

/** With a code that older agents know too: they drop the certificate and recover. */
const refusedEverywhere = async (t: Parameters<typeof openTlsConnection>[0], node: RawNode): Promise<void> => {
  const at = `/v1/nodes/${node.id()}`
  const kept = await openTlsConnection(t, node.target, node.identity())
  assert.equal(code(await kept.call('POST', `${at}/confirm`, {})), '403 CLIENT_CERT_DENIED')
  assert.equal(code(await kept.call('POST', `${at}/renew`, { csr: node.csr })), '403 CLIENT_CERT_DENIED')
  const channel = await openTlsConnection(t, node.target, node.identity())
  assert.equal(code(await channel.upgrade(`${at}/channel`)), '403 CLIENT_CERT_DENIED')
}

test('an authority whose key was stolen is dropped: what it signed is refused, and all nodes recover without an operator', async (t) => {
  const raw: RecoverableNode[] = []
  for (let number = 0; number < machines; number++) raw.push(await recoverableNode(plane(), `raw-${number}`))
  const agents = await Promise.all(
    ['gpu-001', 'gpu-002'].map(async (id) => startAgent(t, { join: await plane().token('--node', id) })),
  )
  await Promise.all([connected('gpu-001', 1), connected('gpu-002', 1)])
  const [first] = raw
  assert(first !== undefined)
  const channel = await first.node.openChannel({ pings: 'ignored', closes: 'ignored' })
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello')
  const stolen = issuerOf(first.node.identity())
  const counts = raw.map(({ counter }) => countIn(counter()))

  const rotated = await plane().muster(
    'ca',
    'rotate',
    '--compromised',
    stolen,
    '--reason',
    'its backup was stolen',
    '-o',
    'json',
  )
  assert.equal(rotated.code, 0, rotated.stderr)
  const { withdrawn, successors, channels_cut: cut } = JSON.parse(rotated.stdout)
  assert.deepEqual([withdrawn, cut], [[stolen], 3])
  const [successor] = successors
  const closing = await channel.frame('closing')
  assert.deepEqual([closing.body.code, typeof closing.body.retry_after_ms], ['ISSUER_WITHDRAWN', 'number'])
  for (const { node } of raw) await refusedEverywhere(t, node)

  for (const { id, comeBack, node } of raw) {
    const reply = await comeBack()
    assert.equal(issuerOf(node.identity()), successor)
    assert.deepEqual([reply.body.node_id, reply.body.epoch, reply.body.withdrawn_issuers], [id, 2, [stolen]])
  }
  assert.deepEqual(
    raw.map(({ counter }) => countIn(counter())),
    counts.map((count) => count + 1),
  )
  await Promise.all([connected('gpu-001', 2), connected('gpu-002', 2)])
  for (const agent of agents) {
    const { epoch, current, withdrawnIssuers } = heldBy(agent)
    assert.deepEqual([epoch, issuerOf(current), withdrawnIssuers], [2, successor, [stolen]])
  }

  const [compromised] = await journal('type=ca.compromised')
  assert.equal(compromised?.issuer, stolen)
  const told = (await journal('')).filter(({ correlation }) => correlation === compromised?.correlation)
  assert.deepEqual(
    told.map(({ type }) => type),
    ['ca.rotated', 'ca.compromised', 'alert.raised'],
  )
  const [back] = (await journal('type=node.recovered&node=gpu-001')).slice(-1)
  assert.deepEqual([back?.body['failure_code'], back?.body['withdrawn_issuer']], ['ISSUER_WITHDRAWN', stolen])
  const story = (await journal('node=gpu-001')).filter(({ correlation }) => correlation === back?.correlation)
  assert.deepEqual(
    story.map(({ type }) => type).filter((type) => type !== 'refused'),
    ['node.recovery_requested', 'node.superseded', 'node.recovered', 'node.confirmed'],
  )
  const { authorities } = (await plane().api('GET', '/v1/ca')).body
  assert.equal(typeof authorities.find(({ id }: { id: string }) => id === stolen).withdrawn_at, 'string')
})

test('issuance is halted: no node enrolls, renews or recovers, nothing is used up, and it goes on when it is resumed', async () => {
  const node = await recoverableNode(plane(), 'still-here')
  const secret: string = (await plane().api('POST', '/v1/tokens', { node: 'newcomer' })).body.secret
  const newcomer = rawNode(await plane().target())
  const halted = await plane().muster('issuance', 'halt', '--reason', 'somebody enrolls at night')
  assert.equal(halted.code, 0, halted.stderr)
  assert.match(halted.stdout, /halted by operator:.*\nreason +somebody enrolls at night\nrenewals +halted too/)
  const enrolled = await newcomer.enrollByToken(secret)
  assert.deepEqual([code(enrolled), enrolled.headers['retry-after']], ['503 ISSUANCE_HALTED', '60'])
  assert.equal(code((await node.node.renew()).reply), '503 ISSUANCE_HALTED')
  assert.equal(code(await node.recover()), '503 ISSUANCE_HALTED')
  assert.equal(code(await node.node.confirm()), '200')
  const ready = await plane().api('GET', '/readyz')
  assert.deepEqual([ready.status, ready.body.warnings?.length], [200, 1])
  assert.match((await plane().muster('domain', 'show')).stderr, /halted by/)
  const alerts = (await plane().api('GET', '/v1/alerts')).body.alerts
  assert.ok(alerts.some(({ kind }: { kind: string }) => kind === 'issuance_halted'))

  assert.equal((await plane().api('POST', '/v1/issuance/halt', { reason: 'audit', renewals: true })).status, 200)
  assert.equal((await node.node.renew()).reply.status, 200)
  assert.equal(code(await newcomer.enrollByToken(secret)), '503 ISSUANCE_HALTED')
  assert.equal((await plane().muster('issuance', 'resume')).code, 0)
  assert.equal((await newcomer.enrollByToken(secret)).status, 200)
  const again = await plane().muster('issuance', 'resume')
  assert.deepEqual([again.code, /ISSUANCE_NOT_HALTED/.test(again.stderr)], [1, true])
})
