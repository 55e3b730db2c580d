import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import type { TaskFault } from '#wire/tasks/task-faults.ts'
import { thisNode } from '../../../../test/fakes/host-of-programs.ts'
import { hourMs, spkiOf, taskAuthority, verifierOf, withField } from '../../../../test/fakes/signed-tasks.ts'
import { judgeStatement, toleranceMs, type StatementFacts, type StatementMemory } from './judge-statement.ts'

const nowMs = Date.UTC(2027, 0, 1)
const authority = taskAuthority(nowMs)
const stranger = generateKey('ed25519')

const before: StatementMemory = { number: 7, epoch: 3, issuedMs: nowMs - hourMs, rememberedSinceMs: 0, statement: null }

const facts = (text: string, change: Partial<StatementFacts> = {}): StatementFacts => ({
  text,
  node: thisNode,
  pinned: [spkiOf(authority.statementKey)],
  memory: before,
  nonces: ['nonce-of-this-helper'],
  hostMs: nowMs,
  provenMs: null,
  floorMs: 0,
  ...change,
})

const accepted = (text: string, change: Partial<StatementFacts> = {}) => {
  const judged = judgeStatement(facts(text, change))
  assert.ok(judged.kind === 'accepted', JSON.stringify(judged))
  return judged
}

const refusedWith = (fault: TaskFault, text: string, change: Partial<StatementFacts> = {}): void => {
  const judged = judgeStatement(facts(text, change))
  assert.ok(judged.kind === 'task-refused', `${fault} expected: ${JSON.stringify(judged)}`)
  assert.equal(judged.fault, fault, judged.why)
}

test('a statement of the pinned key for this node is believed, and says which signers count', () => {
  const { memory, pinned, proof } = accepted(authority.statement())
  assert.equal(memory.number, 7)
  assert.equal(memory.epoch, 3)
  assert.equal(memory.issuedMs, nowMs)
  assert.deepEqual(memory.statement?.verifiers, [verifierOf(authority.signer)])
  assert.deepEqual(pinned, [spkiOf(authority.statementKey)])
  assert.equal(proof, null)
})

test('a statement of which any field was changed is not believed', () => {
  const changes: Readonly<Record<string, unknown>> = {
    domain: 'other.test',
    node: 'gpu-002',
    epoch: 4,
    number: 8,
    verifiers: [verifierOf(stranger)],
    withdrawn: [verifierOf(authority.signer).key],
    statement_keys: [spkiOf(stranger)],
    issued_ms: nowMs + 1,
    expires_ms: nowMs + hourMs,
    nonce: 'nonce-of-this-helper',
  }
  const text = authority.statement()
  const fields = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString('utf8')) as object
  assert.deepEqual(Object.keys(changes).sort(), Object.keys(fields).sort())
  for (const [field, value] of Object.entries(changes))
    refusedWith('STATEMENT_NOT_SIGNED', withField(text, field, value))
  refusedWith('STATEMENT_NOT_SIGNED', withField(text, 'more', 1))
  refusedWith('STATEMENT_NOT_SIGNED', `${text.slice(0, -4)}AAAA`)
  refusedWith('STATEMENT_NOT_SIGNED', text.split('.').slice(0, 2).join('.'))
  refusedWith('STATEMENT_NOT_SIGNED', text.replace(/^verifiers1/, 'task1'))
  refusedWith('STATEMENT_NOT_SIGNED', authority.task())
  refusedWith('STATEMENT_NOT_SIGNED', '')
})

test('a statement that a task signer or a stranger signed is not believed', () => {
  refusedWith('STATEMENT_NOT_SIGNED', authority.statement({}, authority.signer))
  refusedWith('STATEMENT_NOT_SIGNED', authority.statement({}, stranger))
  refusedWith('STATEMENT_NOT_SIGNED', authority.statement(), { pinned: [] })
  const own = authority.statement({ statement_keys: [spkiOf(stranger)] }, stranger)
  refusedWith('STATEMENT_NOT_SIGNED', own)
})

test('a statement for another node or domain, or with a nonce of another helper, is refused', () => {
  refusedWith('STATEMENT_OF_ANOTHER', authority.statement({ node: 'gpu-002' }))
  refusedWith('STATEMENT_OF_ANOTHER', authority.statement({ domain: 'other.test' }))
  refusedWith('STATEMENT_OF_ANOTHER', authority.statement({ nonce: 'nonce-of-another-helper' }))
  refusedWith('STATEMENT_OF_ANOTHER', authority.statement({ nonce: 'nonce-of-this-helper' }), { nonces: [] })
})

test('a lower number and an older epoch are refused, also where they are fresh', () => {
  refusedWith('STATEMENT_OLDER', authority.statement({ number: 6 }))
  refusedWith('STATEMENT_OLDER', authority.statement({ number: 6, nonce: 'nonce-of-this-helper' }))
  refusedWith('STATEMENT_OLDER', authority.statement({ epoch: 2, number: 9 }))
  assert.equal(accepted(authority.statement({ epoch: 4, number: 7 })).memory.epoch, 4)
})

test('a statement lives at most 24 hours, and names signers by their own ids', () => {
  refusedWith('LIVES_TOO_LONG', authority.statement({ expires_ms: nowMs + 24 * hourMs + 1 }))
  const { key } = verifierOf(authority.signer)
  refusedWith('STATEMENT_NOT_SIGNED', authority.statement({ verifiers: [{ key, spki: spkiOf(stranger) }] }))
  refusedWith('STATEMENT_NOT_SIGNED', authority.statement({ verifiers: [verifierOf(generateKey('p256'))] }))
})

test('a helper without memory takes only a statement with its own nonce', () => {
  refusedWith('FRESH_STATEMENT_NEEDED', authority.statement(), { memory: null })
  refusedWith('STATEMENT_OF_ANOTHER', authority.statement({ nonce: 'nonce-of-another-helper' }), { memory: null })
  const { proof } = accepted(authority.statement({ nonce: 'nonce-of-this-helper' }), { memory: null })
  assert.deepEqual(proof, { nonce: 'nonce-of-this-helper', timeMs: nowMs })
})

test('with a clock in doubt nothing is judged by it, and a proof of the time decides', () => {
  const text = authority.statement()
  const behind = { memory: { ...before, issuedMs: nowMs }, hostMs: nowMs - toleranceMs - 1 }
  refusedWith('FRESH_STATEMENT_NEEDED', authority.statement({ number: 8 }), behind)
  refusedWith('FRESH_STATEMENT_NEEDED', text, { hostMs: nowMs - 2 * hourMs })
  refusedWith('FRESH_STATEMENT_NEEDED', text, { hostMs: nowMs + 25 * hourMs })
  refusedWith('FRESH_STATEMENT_NEEDED', text, { hostMs: nowMs + 24 * hourMs })
  refusedWith('STATEMENT_EXPIRED', text, { hostMs: nowMs, provenMs: nowMs + 24 * hourMs })
  accepted(text, { hostMs: 0, provenMs: nowMs })
  accepted(text, { hostMs: nowMs + 24 * hourMs - 1 })
  // A clock that was years ahead once is corrected by a fresh statement.
  const ahead = { memory: { ...before, issuedMs: nowMs + 1000 * hourMs } }
  assert.equal(accepted(authority.statement({ nonce: 'nonce-of-this-helper' }), ahead).memory.issuedMs, nowMs)
})

test('the same statement again changes nothing, nor does an older one that says the same', () => {
  const { memory } = accepted(authority.statement({ nonce: 'nonce-of-this-helper' }))
  const again = { memory, nonces: [] }
  assert.deepEqual(judgeStatement(facts(authority.statement({ nonce: 'nonce-of-this-helper' }), again)), {
    kind: 'known',
  })
  const older = authority.statement({
    issued_ms: nowMs - 1,
    expires_ms: nowMs + hourMs,
    statement_keys: [spkiOf(stranger)],
  })
  assert.deepEqual(judgeStatement(facts(older, again)), { kind: 'known' })
})

test('the pinned keys change by a statement under a pinned key', () => {
  const next = generateKey('ed25519')
  const { pinned } = accepted(authority.statement({ statement_keys: [spkiOf(next)] }))
  accepted(authority.statement({ number: 8 }, next), { pinned })
  refusedWith('STATEMENT_NOT_SIGNED', authority.statement({ number: 8 }), { pinned })
})
