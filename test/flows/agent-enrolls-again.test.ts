// The agent against a small plane: it makes a key of a type that its profile allows, and proves the key it has when it enrolls again.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { sha256Hex } from '#platform/bytes.ts'
import { parseCsr } from '#pki/csr.ts'
import { verifySignature } from '#pki/keys.ts'
import { formatStatement, recoveryProofBytes } from '#wire/core/statement.ts'
import type { IdentityProof } from '#wire/identity/identity-api.ts'
import { refusal, startSmallPlane, type Reply, type SmallPlane } from '../fakes/small-plane.ts'
import { runTestAgent, testAgentConfig } from '../fakes/test-agent.ts'
import { eventually } from '../process/eventually.ts'

const enrollments = (small: SmallPlane) =>
  small.calls.filter(({ path }) => path === '/v1/enroll').map(({ body }) => body)
const csrOf = (body: Record<string, unknown> | undefined): string => String(body?.['csr'])
const keyTypeOf = (body: Record<string, unknown> | undefined): string => {
  const csr = parseCsr(csrOf(body))
  return csr.kind === 'malformed' ? csr.why : csr.keyType
}

test('R-050: an agent that learns which key types its profile allows makes one, and repeats that request after a crash', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  const answers: (Reply | 'lost')[] = [
    refusal(400, 'CSR_INVALID', null, { field: 'csr', key_types: ['ed25519'] }),
    'lost',
  ]
  small.intercept = (path) => (path === '/v1/enroll' ? (answers.shift() ?? null) : null)
  const config = testAgentConfig(t, small.join, {})
  const agent = runTestAgent(t, config)
  await eventually('a second request', () => enrollments(small).length === 2)
  await agent.stop()
  const again = runTestAgent(t, config)
  await eventually('a channel', () => small.channels.length > 0)
  const [first, second, ...repeated] = enrollments(small)
  assert.deepEqual([keyTypeOf(first), keyTypeOf(second)], ['p256', 'ed25519'])
  assert.deepEqual([...new Set(repeated.map(csrOf))], [csrOf(second)])
  await again.stop()
})

test('R-050: an agent that can make none of the allowed key types says so and ends', async (t) => {
  const small = await startSmallPlane(t, Date.now())
  small.intercept = () => refusal(400, 'CSR_INVALID', null, { field: 'csr', key_types: ['ml-dsa-65'] })
  const outcome = await runTestAgent(t, testAgentConfig(t, small.join, {})).outcome
  assert.equal(outcome.kind === 'refused' && outcome.trouble.code, 'CSR_INVALID')
})

const challenge = 'challenge1.AAAA.AAAA'
const counter = formatStatement('counter', { domain: 'example.test', node: 'gpu-001', epoch: 1, counter: 1 }, () =>
  Buffer.alloc(64),
)

/** An agent with keys in memory that has to join again while the plane may take it for active. */
const rejoin = async (t: TestContext, understands: readonly string[], answers: readonly (Reply | null)[]) => {
  const small = await startSmallPlane(t, Date.now())
  const left = [...answers]
  small.enrollAnswer = { understands, counter }
  small.intercept = (path) => {
    if (path === '/v1/challenge') return { status: 200, body: { challenge } }
    return path === '/v1/enroll' ? (left.shift() ?? null) : null
  }
  const config = testAgentConfig(t, { ...small.join, secret: null }, { joinMethod: 'hardware', keyStorage: 'memory' })
  runTestAgent(t, config)
  await eventually('a channel', () => small.channels.length > 0)
  small.refuseChannel = refusal(403, 'REJOIN_REQUIRED')
  small.channels[0]?.socket.terminate()
  await eventually('an enrollment that is answered', () => enrollments(small).length >= Math.max(2, answers.length))
  return enrollments(small)
}

test('ruling 23: an agent that enrolls again proves the key of the certificate it has, with its counter, for this request', async (t) => {
  const [first, second] = await rejoin(t, ['identity_proof'], [])
  assert.equal(first?.['identity_proof'], undefined)
  const proof = second?.['identity_proof'] as IdentityProof
  const csr = parseCsr(csrOf(first))
  assert(csr.kind !== 'malformed')
  assert.deepEqual([proof.public_key, proof.counter], [Buffer.from(csr.spki).toString('base64'), counter])
  const about = { purpose: 'prove', node: 'gpu-001', challenge, csrHash: sha256Hex(csrOf(second)), counter } as const
  assert.ok(verifySignature(csr.spki, recoveryProofBytes(about), Buffer.from(proof.proof, 'base64url')))
})

test('a plane that does not understand the proof is sent none; one that has been set back to such a release gets the request without it', async (t) => {
  const [, older] = await rejoin(t, [], [])
  assert.equal(older?.['identity_proof'], undefined)
  const unknown = refusal(400, 'REQUEST_INVALID', null, { field: 'identity_proof', field_unknown: true })
  const [, asked, repeated] = await rejoin(t, ['identity_proof'], [null, unknown, null])
  assert.notEqual(asked?.['identity_proof'], undefined)
  assert.deepEqual([repeated?.['identity_proof'], csrOf(repeated)], [undefined, csrOf(asked)])
})
