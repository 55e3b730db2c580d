// What another domain says of machines: whose claims count, how much is kept of it, and when it is over.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { readOf, entry } from '#domain/core/change.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { Value } from 'typebox/value'
import { publishClaims } from '#plane/federation/publish-claims.ts'
import { addPeerDomain, removePeerDomain } from '#plane/federation/peer-domains.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { receiveClaims } from '#plane/federation/take-claims.ts'
import { generateKey } from '#pki/keys.ts'
import { silentLog } from '#platform/log.ts'
import { ClaimsAnswer } from '#wire/federation/claim-api.ts'
import { mostHardware, type Claims } from '#wire/core/claims.ts'
import { formatStatement } from '#wire/core/statement.ts'
import { slots } from '../fakes/sample-rows.ts'
import { eventually } from '../process/eventually.ts'
import { operator } from './authority-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'

const mac = '52:54:00:00:00:17'

const setUpPeer = async (t: TestContext) => {
  const plane = await setUpOperatorServer(t)
  const { store, clock } = plane
  const key = generateKey('ed25519')
  await registerNode(plane, { id: 'a', profile: null, macs: [mac], bmcSerial: null }, operator)
  const node = await store.get('node', 'a')
  assert.ok(node !== null)
  const membership = { kind: 'active', sinceMs: clock.nowMs(), slots: slots() } as const
  await store.commit({
    reads: [readOf('node', 'a', node)],
    writes: [{ put: 'node', value: { ...node.value, epoch: 1, membership } }],
    entries: [entry(operator, clock.nowMs(), 'node.confirmed', { node: 'a' }, {})],
  })
  const statementKeys = [Buffer.from(key.spki).toString('base64')]
  const asked = { name: 'b.example', url: 'https://b.example:8443', roots: ['-'], statementKeys }
  assert.ok(!isRefusal(await addPeerDomain(plane, asked, operator)))
  const domain = await store.get('domain', 'domain')
  const anonymousBudget = openCallerBudget(clock, () => ({ perMinute: 3, perMinutePerSource: 3 }))
  const say = (machines: Claims['machines'], signs = key, told: Partial<Claims> = {}) => {
    const meant = { domain: 'b.example', to: domain?.value.name ?? '', at_ms: clock.nowMs(), machines }
    const claims: Claims = { ...meant, ...told }
    const statement = formatStatement('claims', claims, (bytes) => signs.sign(bytes))
    return receiveClaims(plane, anonymousBudget, { statement, source: '192.0.2.9', correlation: 'call-1' })
  }
  const conditions = async () => (await store.get('node', 'a'))?.value.conditions.map(({ name }) => name)
  return { plane, anonymousBudget, key, say, conditions }
}

const there: Claims['machines'][number] = { node: 'there', hardware: [`mac:${mac}`], state: 'active' }

test("a caller without a peer's signature is limited like any anonymous caller; a peer is always accepted", async (t) => {
  const { anonymousBudget, say } = await setUpPeer(t)
  const stranger = generateKey('ed25519')
  const codes: string[] = []
  for (let attempt = 0; attempt < 4; attempt++) {
    const answer = await say([], stranger)
    assert.ok(isRefusal(answer))
    codes.push(answer.code)
    anonymousBudget.charge('192.0.2.9')
  }
  assert.deepEqual(codes, ['CLAIM_INVALID', 'CLAIM_INVALID', 'CLAIM_INVALID', 'RATE_LIMITED'])
  assert.ok(!isRefusal(await say([])))
})

test('what a peer has signed for another domain, or not just now, or after it was removed, changes nothing', async (t) => {
  const { plane, key, say, conditions } = await setUpPeer(t)
  const nowMs = plane.clock.nowMs()
  const wrong: Partial<Claims>[] = [
    { to: 'c.example' },
    { domain: 'c.example' },
    { at_ms: nowMs - 600_000 },
    { at_ms: nowMs + 600_000 },
  ]
  for (const told of wrong) {
    const answer = await say([there], key, told)
    assert.ok(isRefusal(answer) && answer.code === 'CLAIM_INVALID', JSON.stringify(told))
  }
  await removePeerDomain(plane, 'b.example', operator)
  const late = await say([there])
  assert.ok(isRefusal(late) && late.code === 'CLAIM_INVALID')
  assert.deepEqual(await conditions(), [])
})

test('a peer that names more addresses than allowed is refused, and so is an answer with endless names', async (t) => {
  const { say } = await setUpPeer(t)
  const hardware = (from: number) => Array.from({ length: 50 }, (_, at) => `bmc:${from + at}`)
  const machines = Array.from({ length: mostHardware / 50 }, (_, at) => ({ ...there, hardware: hardware(at * 50) }))
  assert.ok(!isRefusal(await say(machines)))
  const answer = await say([...machines, { ...there, hardware: ['bmc:x'] }])
  assert.ok(isRefusal(answer) && answer.code === 'CLAIM_INVALID')
  assert.ok(Value.Check(ClaimsAnswer, { machines: [there] }))
  assert.ok(!Value.Check(ClaimsAnswer, { machines: [{ ...there, node: 'x'.repeat(64) }] }))
})

test('a warning ends when its domain is no peer any more, and when its claim has become too old', async (t) => {
  const { plane, say, conditions } = await setUpPeer(t)
  const { clock } = plane
  const publisher = publishClaims(
    { ...plane, log: silentLog },
    {
      domainName: 'a.example',
      recovery: { signStatement: () => new Uint8Array(64) },
      call: async () => ({ machines: [] }),
    },
  )
  t.after(() => publisher.stop())
  await say([there])
  assert.deepEqual(await conditions(), ['active_elsewhere'])
  clock.advance(31 * 24 * 3_600_000)
  await eventually('the old claim to count for nothing', async () => (await conditions())?.length === 0)

  await say([there])
  assert.deepEqual(await conditions(), ['active_elsewhere'])
  await removePeerDomain(plane, 'b.example', operator)
  await eventually('the warning to end with the peer', async () => (await conditions())?.length === 0)
})
