import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryTypesOf, expectDecided, expectRefused, readsOf, writesOf } from '../../../test/fakes/expect-decision.ts'
import { alice, domainRow, neverKnown, nodeRow, noonMs, profileRow, tokenRow } from '../../../test/fakes/sample-rows.ts'
import { noHardware, type Node } from '#domain/core/node.ts'
import type { Token } from '#domain/core/token.ts'
import { decideBatchLine, type BatchLineFacts } from './batch-line.ts'

const batch = '01KTZ4M5N6P7Q8R9S0T1V2W3X4'
const facts: BatchLineFacts = {
  id: 'gpu-001',
  profile: profileRow('gpu-cloud'),
  hardware: noHardware,
  tags: [],
  hardwareProfiles: [],
  existing: null,
  former: neverKnown,
  owners: [],
  tokens: [],
  batch,
  attempt: 2,
  tokenId: 't2',
  secretHash: 'hash-of-new-secret',
  serverName: 'dns:plane.example',
  ttlMs: null,
  domain: domainRow(),
  by: alice,
  nowMs: noonMs,
}
const tagged = { tags: ['rack:r7'], hardwareProfiles: [{ tag: 'rack:r7', row: null }] }

test('an unknown node is registered, tagged and given its token in one change that relies on it being unknown', () => {
  const verdict = expectDecided(decideBatchLine({ ...facts, ...tagged }))
  assert.equal(verdict.registered, true)
  assert.deepEqual(entryTypesOf(verdict), ['node.registered', 'node.tagged', 'enrollment_token.created'])
  const [node, ...others] = writesOf(verdict, 'node') as Node[]
  assert.deepEqual([node?.machine.tags, others], [['rack:r7'], []])
  const [token] = writesOf(verdict, 'token') as Token[]
  assert.deepEqual([token?.batch, token?.attempt], [batch, 2])
  assert.deepEqual(readsOf(verdict).toSorted(), [
    'domain/domain@3',
    'hardware-profile/rack:r7@0',
    'node/gpu-001@0',
    'profile/gpu-cloud@5',
    'purged-node/hash-of-name@0',
    'token/hash-of-new-secret@0',
  ])
})

test('a tombstone is registered anew, and its token is of the new tenure', () => {
  const verdict = expectDecided(decideBatchLine({ ...facts, existing: nodeRow('revoked') }))
  const [token] = writesOf(verdict, 'token') as Token[]
  assert.deepEqual(token?.scope, { kind: 'node', node: 'gpu-001', tenure: 2 })
})

test('a registered node stays as it is, and what the line leaves out is not compared', () => {
  const verdict = expectDecided(decideBatchLine({ ...facts, existing: nodeRow('registered') }))
  assert.equal(verdict.registered, false)
  assert.deepEqual(entryTypesOf(verdict), ['enrollment_token.created'])
  assert.deepEqual(writesOf(verdict, 'node'), [nodeRow('registered').value])
  assert.ok(readsOf(verdict).includes('node/gpu-001@7'))
  const other = { macs: ['02:00:00:00:00:02'], bmcSerial: null }
  const existing = nodeRow('registered')
  expectRefused(decideBatchLine({ ...facts, existing, hardware: other }), 'NODE_ALREADY_ENROLLED', /other hardware/)
})

test('an unused token of the same batch is withdrawn; one that is used, bound or made otherwise is not', () => {
  const token = (id: string, changes: Partial<Token>) => tokenRow({ id, hash: `hash-${id}`, ...changes })
  const tokens = [
    token('lost', { batch, attempt: 1 }),
    token('used', { batch, attempt: 1, state: { kind: 'used', spki: 'k', node: 'gpu-001', atMs: noonMs } }),
    token('bound', { batch, state: { kind: 'bound', spki: 'k', node: 'gpu-001' } }),
    token('alone', {}),
    token('another', { batch: '01KTZ4M5N6P7Q8R9S0T1V2W3X5' }),
  ]
  const verdict = expectDecided(decideBatchLine({ ...facts, existing: nodeRow('registered'), tokens }))
  assert.equal(verdict.withdrawn, 1)
  const written = (writesOf(verdict, 'token') as Token[]).map(({ id, state }) => [id, state.kind])
  assert.deepEqual(written, [
    ['lost', 'revoked'],
    ['t2', 'unused'],
  ])
  assert.deepEqual(entryTypesOf(verdict), ['enrollment_token.revoked', 'enrollment_token.created'])
})

test('an attempt that is as old as a token of its batch, whatever became of that, or older makes none', () => {
  const states: Token['state'][] = [
    { kind: 'unused' },
    { kind: 'used', spki: 'k', node: 'gpu-001', atMs: noonMs },
    { kind: 'revoked', by: 'operator:bob', atMs: noonMs },
  ]
  for (const state of states)
    for (const attempt of [2, 3]) {
      const tokens = [tokenRow({ batch, attempt, state })]
      for (const existing of [nodeRow('registered'), nodeRow('revoked')])
        expectRefused(decideBatchLine({ ...facts, existing, tokens }), 'ATTEMPT_OUTDATED', /and this is attempt 2/)
    }
  const another = [tokenRow({ batch: '01KTZ4M5N6P7Q8R9S0T1V2W3X5', attempt: 9 })]
  expectDecided(decideBatchLine({ ...facts, existing: nodeRow('registered'), tokens: another }))
})

test('a node that is in already, or shut out, gets no token', () => {
  expectRefused(decideBatchLine({ ...facts, existing: nodeRow('active') }), 'ALREADY_ACTIVE')
  expectRefused(decideBatchLine({ ...facts, existing: nodeRow('quarantined') }), 'NODE_QUARANTINED')
})
