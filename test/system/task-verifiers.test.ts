// A node asks a real plane which task signers to accept.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verifySignature } from '#pki/keys.ts'
import { allFromPem } from '#pki/pem.ts'
import { parseStatement } from '#wire/core/statement.ts'
import { activeNode } from '../process/active-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { openTlsConnection } from '../process/tls-connection.ts'

const shared = sharedPlane()

test('a node gets its own statement of verifiers, signed by a key of ca bundle --statements, with its nonce', async (t) => {
  const plane = shared()
  const node = await activeNode(plane, 'tasked')
  const bundle = await plane.api('GET', '/v1/ca/bundle')
  const pinned = allFromPem('PUBLIC KEY', (bundle.body['statement_keys'] as string[]).join('')) ?? []
  const { signers, number } = (await plane.api('GET', '/v1/task-signers')).body
  const connection = await openTlsConnection(t, await plane.target(), node.identity())
  for (const nonce of ['n'.repeat(22), null]) {
    const { status, body } = await connection.call('POST', '/v1/nodes/tasked/task-verifiers', { nonce })
    assert.equal(status, 200)
    const parsed = parseStatement('verifiers', String(body['statement']))
    assert.ok(parsed !== null)
    assert.ok(pinned.some((spki) => verifySignature(spki, parsed.signed, parsed.signature)))
    const { value } = parsed
    assert.deepEqual([value.node, value.epoch, value.nonce, value.number], ['tasked', 1, nonce, number])
    assert.deepEqual(
      value.verifiers.map(({ key }) => key),
      [signers[0].key],
    )
  }
  const wrong = await connection.call('POST', '/v1/nodes/tasked/task-verifiers', { nonce: 'short' })
  assert.equal(wrong.body.code, 'REQUEST_INVALID')
})
