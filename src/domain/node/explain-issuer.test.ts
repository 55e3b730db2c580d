import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hour, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import { issuerSentences, type IssuerOfNode } from './explain-issuer.ts'

// Issued at 11:00 for a day, and renewed by 03:00.
const node = nodeRow('active').value
const dueMs = noonMs + 15 * hour
const { certificate } = profileRow('gpu-cloud').value
const profile = { certificate: { ...certificate, issuer: 'corp' } }

const away = (awaySinceMs: number | null): IssuerOfNode => ({ awaySinceMs, lost: null })

test('a node whose time to renew has come waits for an issuer that is away, since the later of the two', () => {
  const [sentence] = issuerSentences(node, profile, away(noonMs), dueMs + hour)
  assert.equal(sentence, 'It waits for issuer corp since 2030-01-02T03:00:00.000Z: muster issuer show corp.')
  const [later] = issuerSentences(node, profile, away(dueMs + hour / 2), dueMs + hour)
  assert.match(later ?? '', /since 2030-01-02T03:30:00\.000Z/)
})

test('a node whose certificate is not due does not wait, nor one whose issuer answers, nor one without a certificate', () => {
  assert.deepEqual(issuerSentences(node, profile, away(noonMs), dueMs - 1), [])
  assert.deepEqual(issuerSentences(node, profile, away(null), dueMs + hour), [])
  assert.deepEqual(issuerSentences(nodeRow('registered').value, profile, away(noonMs), dueMs + hour), [])
})

test('an issuer that answers and does not sign is named with what it said, also to a node without a certificate', () => {
  const lost = { why: 'unknown role: nodes', sinceMs: dueMs }
  const said =
    'Its last order to an outside issuer came to nothing at 2030-01-02T03:00:00.000Z (unknown role: nodes): muster issuer test corp.'
  for (const one of [node, nodeRow('registered').value])
    assert.deepEqual(issuerSentences(one, profile, { awaySinceMs: null, lost }, dueMs + hour), [said])
  const [first, ...more] = issuerSentences(node, profile, { awaySinceMs: noonMs, lost }, dueMs + hour)
  assert.match(first ?? '', /^It waits for issuer corp/)
  assert.deepEqual(more, [])
})
