import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memberships, nodeRow, noonMs, row, slot, slots } from '../../../test/fakes/sample-rows.ts'
import type { ConditionName, Node } from '#domain/core/node.ts'
import type { KeyOwner } from '#domain/identity/key-claim.ts'
import { judgeIdentityProof, type IdentityProof, type ProofVerdict } from './identity-proof.ts'

const holding = (node: string, use: KeyOwner['use'] = 'tls') => ({ node, use, sinceMs: noonMs })

const proof = (spki: string, counter: number, changes: Partial<IdentityProof> = {}): IdentityProof => ({
  spki,
  counter: { domain: 'lab.example', node: 'gpu-001', epoch: 4, counter },
  ban: null,
  claim: row({ spki, holders: [holding('gpu-001')] }),
  ...changes,
})

const node = (has = slots(), ...conditions: ConditionName[]): Node =>
  nodeRow('active', {
    membership: { ...memberships.active, slots: has },
    counter: 5,
    conditions: conditions.map((name) => ({ name, sinceMs: noonMs, reason: 'r', evidence: {} })),
  }).value

const renewing = slots({ pending: slot('b2') })
const renewed = slots({ current: slot('b2'), retired: { slot: slot('a1'), untilMs: noonMs } })
const banned = row({ spki: 'key-of-a1', why: 'revoked', atMs: noonMs })
const shared = row({ spki: 'key-of-a1', holders: [holding('gpu-001'), holding('gpu-002')] })

test('ruling 23: whose key was proven, and whether it is of the newest generation', () => {
  const cases: readonly (readonly [string, Node, IdentityProof, ProofVerdict])[] = [
    ['the current key, the latest counter', node(), proof('key-of-a1', 5), 'newest'],
    ['a counter that a restored store has forgotten', node(), proof('key-of-a1', 6), 'newest'],
    ['an older counter', node(), proof('key-of-a1', 4), 'old-counter'],
    ['the current key; its successor may never have arrived', node(renewing), proof('key-of-a1', 4), 'newest'],
    ['the current key, and a counter from before it', node(renewing), proof('key-of-a1', 3), 'old-counter'],
    ['the pending key, the latest counter', node(renewing), proof('key-of-b2', 5), 'newest'],
    ['the pending key, the counter of its predecessor', node(renewing), proof('key-of-b2', 4), 'old-counter'],
    ['the key before the current one', node(renewed), proof('key-of-a1', 4), 'replaced-key'],
    ['the key before it with the latest counter', node(renewed), proof('key-of-a1', 5), 'replaced-key'],
    ['a key of an earlier epoch', node(), proof('key-of-years-ago', 5), 'replaced-key'],
    [
      'an earlier key of a node that could not keep a newer one',
      node(renewed, 'not_persisted'),
      proof('key-of-a1', 4),
      'nothing',
    ],
    ['no key of this node', node(), proof('any', 5, { claim: null }), 'nothing'],
    [
      'the key of another node',
      node(),
      proof('any', 5, { claim: row({ spki: 'any', holders: [holding('gpu-002')] }) }),
      'nothing',
    ],
    [
      'its recovery key, which another field proves',
      node(),
      proof('any', 5, { claim: row({ spki: 'any', holders: [holding('gpu-001', 'recovery')] }) }),
      'nothing',
    ],
    ['a banned key', node(), proof('key-of-a1', 5, { ban: banned }), 'nothing'],
    ['a key that another node has as well', node(), proof('key-of-a1', 5, { claim: shared }), 'nothing'],
    ['a node without certificates', nodeRow('registered').value, proof('key-of-a1', 5), 'nothing'],
  ]
  for (const [name, about, brought, verdict] of cases) assert.equal(judgeIdentityProof(about, brought), verdict, name)
})
