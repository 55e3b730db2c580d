import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hour, nodeRow, noonMs, profileRow } from '../../../test/fakes/sample-rows.ts'
import { issuerSentences } from './explain-issuer.ts'

// Issued at 11:00 for a day, and renewed by 03:00.
const node = nodeRow('active').value
const dueMs = noonMs + 15 * hour
const { certificate } = profileRow('gpu-cloud').value
const profile = { certificate: { ...certificate, issuer: 'corp' } }

test('a node whose time to renew has come waits for an issuer that is away, since the later of the two', () => {
  const [sentence] = issuerSentences(node, profile, noonMs, dueMs + hour)
  assert.equal(sentence, 'It waits for issuer corp since 2030-01-02T03:00:00.000Z: muster issuer show corp.')
  const [later] = issuerSentences(node, profile, dueMs + hour / 2, dueMs + hour)
  assert.match(later ?? '', /since 2030-01-02T03:30:00\.000Z/)
})

test('a node whose certificate is not due does not wait, nor one whose issuer answers, nor one without a certificate', () => {
  assert.deepEqual(issuerSentences(node, profile, noonMs, dueMs - 1), [])
  assert.deepEqual(issuerSentences(node, profile, null, dueMs + hour), [])
  assert.deepEqual(issuerSentences(nodeRow('registered').value, profile, noonMs, dueMs + hour), [])
})
