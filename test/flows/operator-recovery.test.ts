// What operators see and decide of recoveries: who would come back by itself, why one does not, and what led there.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { slotOf } from '#domain/core/certificate.ts'
import { readOf, entry } from '#domain/core/change.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import type { Node } from '#domain/core/node.ts'
import { isoTime } from '#platform/clock.ts'
import { NodeExplanation, Recoverability } from '#wire/node/node-evidence.ts'
import type { ReportBody } from '#wire/node/report.ts'
import { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { reportOf } from '../fakes/agent-words.ts'
import { someCertificate } from '../store/harness.ts'
import { operator, startMs } from './authority-setup.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

const slots = { current: slotOf(someCertificate('a1', { notAfterMs: startMs * 2 })), pending: null, retired: null }
const credential = { kind: 'key', spki: 's', publicKey: 'p', registeredAtMs: startMs } as const
const recovery = { credential, recoveredAtMs: [], denied: null, episode: null }
const passed = { outcome: 'passed', sinceMs: startMs, epoch: 1 } as const

/** A node that is active and has registered how it recovers, unless told otherwise. */
const putNode = async (
  { store, call }: OperatorSetup,
  id: string,
  changes: Partial<Node> = {},
  more: readonly EntryDraft[] = [],
): Promise<void> => {
  await call('operator', 'POST', '/v1/nodes', { id })
  const row = await store.get('node', id)
  assert.ok(row !== null)
  const active: Node = { ...row.value, membership: { kind: 'active', sinceMs: startMs, slots }, epoch: 1, recovery }
  const confirmed = entry(operator, startMs, 'node.confirmed', { node: id, epoch: 1 })
  const outcome = await store.commit({
    reads: [readOf('node', id, row)],
    writes: [{ put: 'node', value: { ...active, ...changes } }],
    entries: [...more, confirmed],
  })
  assert.notEqual(outcome, 'lost-race')
}

test('an operator says no to the recoveries of a node, and an approval takes that back', async (t) => {
  const plane = await setUpOperatorServer(t)
  await putNode(plane, 'gpu-001')
  const denied = await plane.call('operator', 'POST', '/v1/nodes/gpu-001/deny')
  assert.equal(denied.status, 200, JSON.stringify(denied.body))
  assert.deepEqual(denied.body.recoverable, { proven: false, why: 'recovery denied by an operator' })
  const again = await plane.call('operator', 'POST', '/v1/nodes/gpu-001/deny')
  assert.deepEqual([again.status, again.body.code], [409, 'NODE_STATE_CONFLICT'])
  const approved = await plane.call('operator', 'POST', '/v1/nodes/gpu-001/approve')
  assert.equal(approved.status, 200, JSON.stringify(approved.body))
  assert.equal((await plane.store.get('node', 'gpu-001'))?.value.recovery?.denied, null)
  const told = (await plane.journal('node.recovery_denied')).map(({ actor }) => actor)
  assert.deepEqual(told, ['operator:the-operator'])
})

test('an operator settles who the right machine is, with a reason, while it is connected; an approval does not', async (t) => {
  const plane = await setUpOperatorServer(t)
  const duplicate = { name: 'duplicate_identity', sinceMs: startMs, reason: 'two', evidence: {} } as const
  await putNode(plane, 'gpu-001', { conditions: [duplicate] })
  const path = '/v1/nodes/gpu-001'
  const conflict = [409, 'NODE_STATE_CONFLICT']
  const approved = await plane.call('operator', 'POST', `${path}/approve`)
  assert.deepEqual([approved.status, approved.body.code], conflict)
  const settle = (body: object, role: 'viewer' | 'operator' = 'operator') =>
    plane.call(role, 'POST', `${path}/settle`, body)
  assert.equal((await settle({ reason: 'wiped' }, 'viewer')).body.code, 'ROLE_FORBIDDEN')
  assert.equal((await settle({})).body.code, 'REQUEST_INVALID')
  const away = await settle({ reason: 'wiped' })
  assert.deepEqual([away.status, away.body.code], conflict)

  plane.sessions.set('gpu-001', [{ number: 7, sinceMs: startMs, serial: 'a1' }])
  const { status, body } = await settle({ reason: 'wiped' })
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(body.conditions, [])
  assert.deepEqual(body.recoverable, { proven: false, why: 'nothing registered' })
  const [told] = await plane.journal('node.settled')
  assert.deepEqual([told?.actor, told?.body['reason']], ['operator:the-operator', 'wiped'])
  const again = await settle({ reason: 'wiped' })
  assert.deepEqual([again.status, again.body.code], conflict)
})

test('a repair bundle takes a platform-admin and a reason, works once, and only its hash is kept', async (t) => {
  const plane = await setUpOperatorServer(t)
  await putNode(plane, 'gpu-001')
  const ask = (role: 'operator' | 'platform-admin', body: object) =>
    plane.call(role, 'POST', '/v1/nodes/gpu-001/repair-bundle', body)
  assert.equal((await ask('operator', { reason: 'r' })).body.code, 'ROLE_FORBIDDEN')
  assert.equal((await ask('platform-admin', {})).body.code, 'REQUEST_INVALID')
  const { status, body } = await ask('platform-admin', { reason: 'new disk' })
  assert.equal(status, 200, JSON.stringify(body))
  assert.ok(Check(RepairBundle, body), JSON.stringify(body))
  assert.deepEqual(body.recovery_urls, ['https://plane.example:8442'])
  assert.equal(Date.parse(body.issued.expires_at) - Date.parse(body.issued.at), 3_600_000)
  const { body: entries } = await plane.call('viewer', 'GET', '/v1/journal?type=node.repair_bundle_issued')
  assert.equal(entries.entries[0].cursor, body.issued.journal)
  const kept = await plane.store.get('node', 'gpu-001')
  assert.equal(kept?.value.membership.kind, 'quarantined')
  assert.ok(!JSON.stringify(kept).includes(body.recovery_token))
  const next = await ask('platform-admin', { reason: 'lost the first' })
  assert.notEqual(next.body.recovery_token, body.recovery_token)
})

test('the share that is proven recoverable is shown, and the list shows which and why not, page by page', async (t) => {
  const plane = await setUpOperatorServer(t)
  const ids = Array.from({ length: 12 }, (_, at) => `n-${10 + at}`)
  for (const [at, id] of ids.entries()) await putNode(plane, id, at % 3 === 0 ? { rehearsal: passed } : {})
  const { body: share } = await plane.call('viewer', 'GET', '/v1/recoverability')
  assert.ok(Check(Recoverability, share))
  assert.deepEqual(share, { nodes: 12, proven: 4, share: 4 / 12, why: [{ why: 'never rehearsed', count: 8 }] })

  const listed = async (recoverable: string, limit: number): Promise<string[]> => {
    const found: string[] = []
    for (let after = ''; ;) {
      const { body } = await plane.call('viewer', 'GET', `/v1/nodes?recoverable=${recoverable}&limit=${limit}${after}`)
      assert.ok(body.nodes.length <= limit)
      found.push(...body.nodes.map(({ id }: { id: string }) => id))
      if (body.next === null) return found
      after = `&after=${body.next}`
    }
  }
  const proven = ids.filter((_, at) => at % 3 === 0)
  for (const limit of [1, 2, 5, 100]) {
    assert.deepEqual(await listed('yes', limit), proven)
    assert.deepEqual(
      await listed('no', limit),
      ids.filter((id) => !proven.includes(id)),
    )
  }
  assert.equal((await plane.call('viewer', 'GET', '/v1/nodes?recoverable=maybe')).status, 400)
})

test('a fleet of none has no share', async (t) => {
  const plane = await setUpOperatorServer(t)
  const { body } = await plane.call('viewer', 'GET', '/v1/recoverability')
  assert.deepEqual(body, { nodes: 0, proven: 0, share: null, why: [] })
})

test('explain tells what led to the state of a node also behind many renewals of its programs and many refusals', async (t) => {
  const plane = await setUpOperatorServer(t)
  const by = { actor: 'node:gpu-001', source: null, correlation: null }
  const about = { node: 'gpu-001', epoch: 1 }
  const often = Array.from({ length: 300 }, (_, at) => [
    entry(by, startMs + at, 'program.renewed', about, { output: 'web' }),
    entry(by, startMs + at, 'refused', about, { code: 'RATE_LIMITED', attempt: 'POST /v1/renew', detail: null }),
    entry(by, startMs + at, 'node.renewed', about, { not_after: `day ${at}` }),
  ])
  await putNode(plane, 'gpu-001', {}, [
    entry(by, startMs - 1, 'node.quarantined', about, { reason: 'it was stolen' }),
    ...often.flat(),
  ])
  const { body } = await plane.call('viewer', 'GET', '/v1/nodes/gpu-001/explain')
  const told = body.chain.map(({ what }: { what: string }) => what)
  assert.ok(told.includes('quarantined: it was stolen'), told.join())
  assert.ok(told.includes('renewed: a certificate good until day 299'), told.join())
  assert.ok(!told.some((what: string) => what.includes('day 298')))
})

test('explain says what failed, what was tried, what happens next and what an operator could do', async (t) => {
  const plane = await setUpOperatorServer(t)
  const story = { actor: 'node:gpu-001', source: '192.0.2.9', correlation: 'episode-12345678' }
  const about = { node: 'gpu-001', epoch: 1 }
  const waits = { name: 'needs_approval', sinceMs: startMs, reason: 'it asks to recover', evidence: {} } as const
  await putNode(plane, 'gpu-001', { conditions: [waits] }, [
    entry(story, startMs, 'node.recovery_requested', about, { failure_class: 'cert_expired', failed_since: 'noon' }),
    entry(story, startMs, 'refused', about, { code: 'APPROVAL_REQUIRED', attempt: 'POST /v1/recover', detail: null }),
  ])
  const line = {
    at: isoTime(startMs - 1000),
    place: 'renewal',
    event: 'failed',
    class: 'cert_expired',
    code: 'CLIENT_CERT_EXPIRED',
    text: 'its certificate has expired',
    next: 'it recovers',
    times: 3,
    correlation: story.correlation,
  } as const
  plane.store.observe('gpu-001', { report: reportOf('a', 1, { at: isoTime(startMs), story: [line] }) })

  const { body } = await plane.call('viewer', 'GET', '/v1/nodes/gpu-001/explain')
  assert.ok(Check(NodeExplanation, body), JSON.stringify(body))
  const told = body.chain.filter(({ correlation }) => correlation === story.correlation)
  assert.deepEqual(
    told.map(({ who, what }) => `${who}: ${what}`),
    [
      'its agent: renewal failed: its certificate has expired (CLIENT_CERT_EXPIRED, 3 times)',
      'node:gpu-001 (192.0.2.9): it asked to recover: cert_expired since noon',
      'node:gpu-001 (192.0.2.9): refused APPROVAL_REQUIRED at POST /v1/recover',
    ],
  )
  const sentences = body.sentences.join(' ')
  assert.match(sentences, /Active since/)
  assert.match(sentences, /not proven .* never rehearsed/)
  assert.match(sentences, /Its agent says: its certificate has expired \(cert_expired\).*Next: it recovers/)
  assert.equal(body.last_report_at, isoTime(startMs))
  assert.deepEqual(body.next.slice(0, 2), ['muster node approve gpu-001', 'muster node deny gpu-001'])
  const unknown = await plane.call('viewer', 'GET', '/v1/nodes/gpu-404/explain')
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'NODE_NOT_FOUND'])
})

test('explain says nothing of a failure that was before the epoch of the node, or before its open channel', async (t) => {
  const plane = await setUpOperatorServer(t)
  await putNode(plane, 'gpu-001', { epoch: 2 })
  const line = {
    ...({ at: isoTime(startMs), place: 'channel', event: 'failed', class: null, code: 'channel_closed' } as const),
    ...{ text: 'The channel ended (CLIENT_CERT_DENIED).', next: 'The agent reconnects automatically' },
    ...{ times: 1, correlation: null },
  }
  const entered = { ...line, place: 'enrollment', event: 'succeeded', text: 'Enrolled as gpu-001, epoch 2.' } as const
  const said = async (serial: string, story: ReportBody['story']): Promise<string[]> => {
    plane.store.observe('gpu-001', { report: reportOf('a', 1, { certificate: { serial, not_after: 'x' }, story }) })
    const { body } = await plane.call('viewer', 'GET', '/v1/nodes/gpu-001/explain')
    return body.sentences.filter((sentence: string) => sentence.startsWith('Its agent says'))
  }
  const told = [
    `Its agent says: The channel ended (CLIENT_CERT_DENIED), at ${line.at}. Next: The agent reconnects automatically`,
  ]
  assert.deepEqual(await said('a1', [line]), told)
  assert.deepEqual(await said('a1', [line, entered]), [])
  assert.deepEqual(await said('of-epoch-1', [line]), [])
  plane.sessions.set('gpu-001', [{ number: 1, sinceMs: startMs + 1, serial: 'a1' }])
  assert.deepEqual(await said('a1', [line]), [])
})
