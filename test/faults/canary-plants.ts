// Secrets put where they do not belong, by people and programs that got something wrong, or mean harm. Each has a secret of
// its own, so that whatever turns up tells where it came from.

import assert from 'node:assert/strict'
import * as net from 'node:net'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { evidenceHeader } from '#wire/core/agent-evidence.ts'
import { evidenceOf, instanceOf, reportOf } from '../fakes/agent-words.ts'
import { eventually } from '../process/eventually.ts'
import type { NodeTarget } from '../process/node-call.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { rawEvidence, recoverableNode } from '../process/raw-recovery.ts'
import { selfSigned } from '../process/self-signed.ts'
import { newKeyPem, secretIn, type Ask, type World } from './canary-world.ts'

/** On the listener for nodes, by an anonymous caller. */
export const anonymousPlant = async (world: World): Promise<void> => {
  const { ledger } = world
  const target = await world.plane().target()
  const csr = makeCsr(generateKey('p256'), 'node')
  const enroll = (body: object): Ask => ({
    method: 'POST',
    path: '/v1/enroll',
    body: { method: 'token', csr, ...body },
  })
  const get = (headers: Ask['headers']): Ask => ({ path: '/v1/bundle', headers: headers ?? {} })
  const json = { 'content-type': 'application/json' }
  const asks: Ask[] = [
    { path: `/${ledger.shapeless('a path')}` },
    { path: `/v1/nodes/${ledger.shapeless('the path of a node')}/channel` },
    { method: 'POST', path: `/v1/nodes/${ledger.misplaced('the path of a node, with a shape')}/renew`, body: {} },
    { method: 'POST', path: `/v1/enroll?token=${ledger.shapeless('a query')}`, body: {} },
    { path: `/v1/bundle?${ledger.misplaced('the name of a query')}=1` },
    { method: 'DELETE', path: `/v1/bundle?x=${ledger.shapeless('another method')}` },
    get({ host: ledger.shapeless('Host') }),
    get({ 'user-agent': ledger.shapeless('User-Agent') }),
    get({ authorization: `Bearer ${ledger.misplaced('Authorization, for machines', 'muster_key')}` }),
    get({ authorization: `Bearer ${world.plane().adminKey}` }),
    get({ cookie: `session=${ledger.shapeless('a cookie')}` }),
    get({ [evidenceHeader]: ledger.shapeless('a header of evidence') }),
    enroll({ enrollment_token: ledger.misplaced('an unknown token') }),
    enroll({ enrollment_token: ledger.misplaced('a token that is too long') + 'x' }),
    enroll({ enrollment_token: ledger.misplaced('a bearer token to enroll with', 'recover') }),
    enroll({ enrollment_token: world.plane().adminKey }),
    enroll({ enrollment_token: 'x', node_id: ledger.misplaced('the name a node asks for') }),
    enroll({ enrollment_token: 'x', [ledger.misplaced('the name of a field')]: 1 }),
    enroll({ enrollment_token: 'x', unknown: ledger.shapeless('a field that is not known') }),
    enroll({ enrollment_token: 'x', csr: ledger.shapeless('a request that is none') }),
    enroll({ enrollment_token: ledger.misplaced('a token with a key as request'), csr: newKey(world, 'a request') }),
    enroll({ method: ledger.misplaced('a way to join') }),
    enroll({
      method: 'hardware',
      hardware_identity: { macs: [], bmc_serial: ledger.misplaced('a serial number of hardware') },
    }),
    enroll({ enrollment_token: 'x', recovery: { kind: ledger.misplaced('a kind of recovery') } }),
    { method: 'POST', path: '/v1/enroll', headers: json, body: `{"a": ${ledger.shapeless('no JSON')}` },
    { method: 'POST', path: '/v1/enroll', headers: json, body: `{"__proto__": "${ledger.shapeless('a prototype')}"}` },
    { method: 'POST', path: '/v1/enroll', headers: { 'content-type': ledger.shapeless('a content type') }, body: 'x' },
    { method: 'POST', path: '/v1/recover', body: { token: ledger.misplaced('recovery at the wrong door', 'recover') } },
    { method: 'POST', path: '/v1/challenge', body: { nonce: 'x', node_id: ledger.misplaced('a challenge for') } },
  ]
  await inTurn(asks, (ask) => world.ask(target, null, ask))
  const stranger = selfSigned(ledger.shapeless('the name in a certificate'))
  ledger.learn('out of place', 'the key of a stranger', stranger.keyPem)
  await world.ask(target, stranger, { method: 'POST', path: '/v1/nodes/key-1/confirm', body: {} })
  await shout(target, `GET /${ledger.shapeless('HTTP without TLS')} HTTP/1.1\r\nHost: x\r\n\r\n`)
  // The subject of a request that is granted.
  const join = await world.invite('raw-subject')
  const key = generateKey('p256')
  ledger.learn('key of an agent', 'raw-subject', key.pkcs8Pem())
  const subject = makeCsr(key, ledger.shapeless('the subject of a request'))
  const granted = await world.ask(target, null, enroll({ enrollment_token: secretIn(join), csr: subject }))
  assert.equal(granted.status, 200, JSON.stringify(granted.body))
}

/** By a node that is one: in what it says of itself. */
export const nodesPlant = async (world: World): Promise<void> => {
  const { ledger } = world
  const hint = (where: string): string => `${where}: ${ledger.misplaced(where)}, ${newKey(world, where)}`
  const node = await rawMember(world, 'raw-words')
  const channel = await node.openChannel({
    evidence: evidenceOf('raw', {
      agent_version: ledger.misplaced('the version in evidence'),
      hardware: { macs: [], bmc_serial: ledger.misplaced('the serial number in evidence') },
    }),
    hello: {
      agent_version: ledger.misplaced('the version of an agent'),
      capabilities: [ledger.misplaced('a capability')],
      config_revision: 0,
      trust_revision: 0,
    },
  })
  assert.ok('frames' in channel, JSON.stringify(channel))
  await channel.frame('hello', patience)
  channel.send(ledger.misplaced('a type of frame'), {})
  channel.send(
    'report',
    wordyReport(hint, (where) => ledger.misplaced(where)),
  )
  channel.send('applied', {
    config_revision: 1,
    trust_revision: 1,
    persisted: false,
    detail: ledger.misplaced('what could not be applied'),
  })
  await eventually('the report to be taken', () => channel.frames.some(({ type }) => type === 'reported'), patience)
  await eventually(
    'what it said to be shown',
    async () => {
      const { body } = await world.operate('GET', '/v1/nodes/raw-words')
      return JSON.stringify(body).includes('not_persisted') && JSON.stringify(body).includes('disk_full')
    },
    patience,
  )
  channel.sendText(`{"stream": 0, ${ledger.shapeless('no frame')}`)
  await eventually('the channel to end', () => channel.ended(), patience)
  const other = await node.openChannel({ evidence: ledger.shapeless('evidence that is none') })
  if ('frames' in other) {
    other.send('report', { ...reportOf('raw', 2), [ledger.misplaced('a field of a report')]: 1 })
    other.sendBinary(Buffer.from(ledger.shapeless('bytes')))
    await eventually('this channel to end, too', () => other.ended(), patience)
  }
  for (const used of [channel, other]) if ('frames' in used) world.evidence.keep('frames', JSON.stringify(used.frames))

  const id = node.id()
  const asks: Ask[] = [
    { path: `/v1/nodes/${id}/confirm`, body: { persisted: false, detail: hint('a confirmation').slice(0, 250) } },
    { path: `/v1/nodes/${id}/confirm`, body: { detail: 'x', [ledger.misplaced('a field of a confirmation')]: 1 } },
    { path: `/v1/nodes/${id}/renew`, body: { csr: ledger.shapeless('a renewal that is none') } },
    {
      path: `/v1/nodes/${id}/renew`,
      body: { csr: makeCsr(generateKey('p256'), 'x'), counter: ledger.shapeless('count') },
    },
    { path: `/v1/nodes/other/renew`, body: { csr: ledger.shapeless('a renewal of another') } },
  ]
  await inTurn(asks, (ask) => world.ask(node.target, node.identity(), { method: 'POST', ...ask }))
}

/** At the recovery listener: by strangers, and by a node that does recover. */
export const recoveriesPlant = async (world: World): Promise<void> => {
  const { ledger } = world
  const node = await recoverableNode(world.plane(), 'raw-recovery')
  ledger.learn('recovery key of an agent', node.id, node.recoveryKey.pkcs8Pem())
  ledger.learn('key of an agent', node.id, node.node.key.pkcs8Pem())
  const body = async (more: object): Promise<Ask> => ({
    method: 'POST',
    path: '/v1/recover',
    body: { ...(await node.body()), ...more },
  })
  const by = (kind: string, token: string): object => ({ credential: { kind, token } })
  const asks: Ask[] = [
    { path: `/${ledger.shapeless('a path of recovery')}` },
    { method: 'POST', path: `/v1/recover?token=${ledger.shapeless('a query of recovery')}`, body: {} },
    await body(by('bearer', ledger.misplaced('an unknown bearer token', 'recover'))),
    await body(by('repair', ledger.misplaced('an unknown repair token', 'repair'))),
    await body(by('bearer', ledger.misplaced('an enrollment token to recover with'))),
    await body(by('bearer', world.plane().adminKey)),
    await body({ credential: { kind: 'key', challenge: ledger.shapeless('no challenge'), proof: 'x'.repeat(80) } }),
    await body({ counter: ledger.shapeless('no counter') }),
    await body({ csr: ledger.shapeless('no request to recover with') }),
    await body({ [ledger.misplaced('a field of a recovery')]: 1 }),
    await body({ correlation: ledger.misplaced('a correlation') }),
    await body({ register: { kind: 'key', public_key: ledger.shapeless('no public key') } }),
    {
      method: 'POST',
      path: '/v1/rehearse',
      body: {
        node_id: node.id,
        ...by('bearer', ledger.misplaced('a token to rehearse with', 'recover')),
        counter: 'x',
      },
    },
  ]
  await inTurn(asks, (ask) => world.ask(node.target, null, ask))
  const wordy = await node.recover({
    failure: {
      class: 'cert_expired',
      code: ledger.misplaced('the code of a failure'),
      since: new Date().toISOString(),
      cert_not_after: null,
    },
    evidence: {
      ...rawEvidence('wordy'),
      agent_version: ledger.misplaced('the version of who recovers'),
      hardware: { macs: [], bmc_serial: ledger.misplaced('the serial number of who recovers') },
    },
  })
  assert.equal(wordy.status, 200, JSON.stringify(wordy.body))
  // Once more with what was answered to before: a copy, which is named with all it says of itself.
  const copied = await node.recover({
    evidence: {
      ...rawEvidence('copied'),
      agent_version: ledger.misplaced('the version of a copy'),
      hardware: { macs: [], bmc_serial: ledger.misplaced('the serial number of a copy') },
    },
  })
  world.evidence.keep('answer to a copy', JSON.stringify(copied.body))
  assert.equal(copied.body.code, 'DUPLICATE_IDENTITY', JSON.stringify(copied.body))
}

/** By people, over the operator API. */
export const operatorsPlant = async (world: World): Promise<void> => {
  const { ledger } = world
  const key = `Bearer ${world.plane().adminKey}`
  const bearing = (token: string): Ask => ({ path: '/v1/nodes', headers: { authorization: token } })
  const asks: Ask[] = [
    bearing(`Bearer ${ledger.misplaced('an unknown key', 'muster_key')}`),
    bearing(`Bearer ${ledger.misplaced('a token as a key')}`),
    bearing(`Basic ${ledger.shapeless('a password')}`),
    bearing(ledger.shapeless('an authorization that is none')),
    { path: '/v1/nodes', headers: { host: ledger.shapeless('Host, for operators') } },
    { path: '/v1/nodes', headers: { origin: `https://${ledger.shapeless('Origin')}` } },
    ...[
      { path: `/v1/nodes/${ledger.misplaced('a node that is none')}` },
      { path: `/v1/nodes/${ledger.shapeless('a node without a shape')}/explain` },
      { path: `/v1/journal?node=${ledger.misplaced('a node to look for')}` },
      { path: `/v1/journal?type=${ledger.misplaced('a type to look for')}` },
      { path: `/v1/journal?after=${ledger.misplaced('a cursor')}` },
      { path: `/v1/nodes?${ledger.misplaced('the name of a query, for operators')}=1` },
      { method: 'POST', path: '/v1/tokens', body: { node: ledger.misplaced('a node to invite') } },
      { method: 'POST', path: '/v1/tokens', body: { [ledger.misplaced('a field of an invitation')]: 1 } },
      {
        method: 'POST',
        path: '/v1/keys',
        body: { name: ledger.misplaced('a name of a key', 'muster_key'), role: 'x' },
      },
      { method: 'POST', path: '/v1/ca/import', body: { certificate: newKey(world, 'a certificate to import') } },
      { method: 'POST', path: '/v1/profiles', body: { name: ledger.misplaced('a profile') } },
      { method: 'PATCH', path: '/v1/domain', body: { set: { [ledger.misplaced('a setting')]: 1 } } },
      { method: 'PATCH', path: '/v1/domain', body: { set: { defaultProfile: ledger.misplaced('a value') } } },
      {
        method: 'POST',
        path: '/v1/nodes/raw-words/quarantine',
        body: { reason: `because of ${ledger.misplaced('a reason')} and ${newKey(world, 'a reason')}`.slice(0, 256) },
      },
    ].map((ask) => ({ ...ask, headers: { authorization: key } })),
  ]
  await inTurn(asks, (ask) => world.askOperators(ask))
}

const newKey = ({ ledger }: World, where: string): string => {
  const pem = newKeyPem()
  ledger.learn('out of place', `a key in ${where}`, pem)
  return pem
}

const rawMember = async (world: World, id: string): Promise<RawNode> => {
  const join = await world.invite(id)
  const node = rawNode(await world.plane().target(), 'p256', evidenceOf('raw'))
  world.ledger.learn('key of an agent', id, node.key.pkcs8Pem())
  const enrolled = await node.enrollByToken(join)
  assert.equal(enrolled.status, 200, JSON.stringify(enrolled.body))
  assert.equal((await node.confirm()).status, 200)
  return node
}

/** A report as long as it may be, with something in every text of it. */
const wordyReport = (hint: (where: string) => string, token: (where: string) => string) => {
  const at = new Date().toISOString()
  const failure = (where: string) => ({
    at,
    class: 'disk_full',
    code: token(`the code of ${where}`),
    text: hint(where),
  })
  const { renewal, recovery, storage, ...rest } = reportOf('raw', 1)
  return {
    ...rest,
    instance: instanceOf('raw'),
    at,
    certificate: { serial: token('a serial in a report'), not_after: at },
    endpoint_set: { id: token('an endpoint set in a report'), revision: 1, drift_total: 0 },
    renewal: { ...renewal, last_failure: failure('a renewal that failed') },
    recovery: { ...recovery, last_failure: failure('a recovery that failed') },
    rehearsal: { at, outcome: 'failed', step: 'endpoint', why: token('why a rehearsal failed') },
    storage: {
      ...storage,
      errno: token('an errno'),
      dropped_records: [{ source: token('a source'), reason: token('a reason for dropping'), count: 1 }],
    },
    conditions: [
      {
        name: 'disk_full',
        since: at,
        reason: `a condition: ${token('a condition')}`,
        evidence: { path: token('evidence of a condition') },
      },
    ],
    story: [
      {
        ...{ at, place: token('a place in a story'), event: 'failed', class: 'disk_full', times: 1 },
        ...{ code: token('a code in a story'), text: hint('a story'), next: hint('the next step of a story') },
        correlation: token('a correlation in a story'),
      },
    ],
  }
}

/** Bytes that are no handshake. */
const shout = (target: NodeTarget, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(target.url)
    const socket = net.connect({ host: hostname, port: Number(port) }, () => socket.end(text))
    socket.setTimeout(10_000, () => socket.destroy(new Error('the plane keeps a connection that is none')))
    socket.on('error', reject)
    socket.on('close', () => resolve())
    socket.resume()
  })

/** Bounded, for a machine with more to do than this. */
const patience = { withinMs: 60_000, everyMs: 50 } as const

const inTurn = async <T>(all: readonly T[], run: (one: T) => Promise<unknown>): Promise<void> => {
  for (const one of all) await run(one)
}
