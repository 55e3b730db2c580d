import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { parseStatement } from '#wire/core/statement.ts'
import type { TaskFault } from '#wire/tasks/task-faults.ts'
import { thisNode } from '../../../../test/fakes/host-of-programs.ts'
import { hourMs, taskAuthority, taskId, verifierOf, withField } from '../../../../test/fakes/signed-tasks.ts'
import { toleranceMs, type KeptStatement } from './judge-statement.ts'
import { judgeTask, mayBeginAgain, type TaskFacts } from './judge-task.ts'

const nowMs = Date.UTC(2027, 0, 1)
const authority = taskAuthority(nowMs)
const stranger = generateKey('ed25519')

const statement: KeptStatement = {
  digest: '',
  issuedMs: nowMs,
  expiresMs: nowMs + 24 * hourMs,
  verifiers: [verifierOf(authority.signer)],
  withdrawn: [],
}
const memory = { number: 7, epoch: 3, issuedMs: nowMs, rememberedSinceMs: nowMs, statement }

const facts = (text: string, change: Partial<TaskFacts> = {}): TaskFacts => ({
  text,
  node: thisNode,
  memory,
  isSeen: () => false,
  forgottenUntilMs: 0,
  hostMs: nowMs,
  provenMs: null,
  floorMs: 0,
  ...change,
})

const refusedWith = (fault: TaskFault, text: string, change: Partial<TaskFacts> = {}): void => {
  const judged = judgeTask(facts(text, change))
  assert.ok(judged.kind === 'task-refused', `${fault} expected: ${JSON.stringify(judged)}`)
  assert.equal(judged.fault, fault, judged.why)
}

test('a task that a signer of the domain signed for this node now is verified', () => {
  const judged = judgeTask(facts(authority.task({ parameters: { name: 'hello', arguments: ['$HOME'] } })))
  assert.ok(judged.kind === 'verified')
  assert.deepEqual(judged.task.parameters, { name: 'hello', arguments: ['$HOME'] })
})

test('a task of which any field was changed is refused', () => {
  const text = authority.task()
  const changes: Readonly<Record<string, readonly [value: unknown, fault: TaskFault]>> = {
    domain: ['other.test', 'NOT_SIGNED'],
    node: ['gpu-002', 'NOT_SIGNED'],
    epoch: [4, 'NOT_SIGNED'],
    id: [taskId(999), 'NOT_SIGNED'],
    type: ['reboot', 'NOT_SIGNED'],
    parameters: [{ name: 'other' }, 'NOT_SIGNED'],
    issued_ms: [nowMs + 1, 'NOT_SIGNED'],
    expires_ms: [nowMs + 2 * hourMs, 'NOT_SIGNED'],
    key: [verifierOf(stranger).key, 'SIGNER_UNKNOWN'],
    counter: [999, 'NOT_SIGNED'],
  }
  assert.deepEqual(Object.keys(changes).sort(), Object.keys(parseStatement('task', text)?.value ?? {}).sort())
  for (const [field, [value, fault]] of Object.entries(changes)) refusedWith(fault, withField(text, field, value))
  refusedWith('NOT_SIGNED', withField(text, 'more', 1))
  refusedWith('NOT_SIGNED', `${text.slice(0, -4)}AAAA`)
  refusedWith('NOT_SIGNED', text.split('.').slice(0, 2).join('.'))
  refusedWith('NOT_SIGNED', `${text.split('.').slice(0, 2).join('.')}.`)
  refusedWith('NOT_SIGNED', authority.statement())
  refusedWith('NOT_SIGNED', '')
  // The second task's signature over the first one's content.
  const [head, body] = text.split('.')
  refusedWith('NOT_SIGNED', `${head}.${body}.${authority.task().split('.')[2]}`)
})

test('a task of another node, domain or epoch is refused, though it is signed', () => {
  refusedWith('WRONG_DOMAIN', authority.task({ domain: 'other.test' }))
  refusedWith('WRONG_NODE', authority.task({ node: 'gpu-002' }))
  refusedWith('WRONG_EPOCH', authority.task({ epoch: 2 }))
  refusedWith('WRONG_EPOCH', authority.task({ epoch: 4 }))
})

test('a task of a signer that is unknown, withdrawn or not ours is refused', () => {
  refusedWith('SIGNER_UNKNOWN', authority.task({}, stranger))
  refusedWith('SIGNER_UNKNOWN', authority.task({}, authority.statementKey))
  refusedWith('NOT_SIGNED', authority.task({ key: verifierOf(authority.signer).key }, stranger))
  const withdrawn = [verifierOf(authority.signer).key]
  refusedWith('SIGNER_WITHDRAWN', authority.task(), { memory: { ...memory, statement: { ...statement, withdrawn } } })
  const gone = { ...memory, statement: { ...statement, withdrawn, verifiers: [verifierOf(stranger)] } }
  refusedWith('SIGNER_WITHDRAWN', authority.task(), { memory: gone })
})

test('without a statement that is valid now every task is refused', () => {
  refusedWith('STATEMENT_MISSING', authority.task(), { memory: null })
  refusedWith('STATEMENT_MISSING', authority.task(), { memory: { ...memory, statement: null } })
  const lateMs = nowMs + 24 * hourMs
  const late = authority.task({ issued_ms: lateMs, expires_ms: lateMs + hourMs })
  refusedWith('FRESH_STATEMENT_NEEDED', late, { hostMs: lateMs })
  refusedWith('STATEMENT_EXPIRED', late, { hostMs: lateMs, provenMs: lateMs })
})

test('a task lives at most 24 hours and ends at its expiry, by a time that is proven where the clock is in doubt', () => {
  refusedWith('LIVES_TOO_LONG', authority.task({ expires_ms: nowMs + 24 * hourMs + 1 }))
  const text = authority.task()
  refusedWith('FRESH_STATEMENT_NEEDED', text, { hostMs: nowMs + hourMs })
  refusedWith('TASK_EXPIRED', text, { hostMs: nowMs + hourMs, provenMs: nowMs + hourMs })
  // The clock was set back, or stands: the proof says that the task is over.
  refusedWith('TASK_EXPIRED', text, { hostMs: nowMs, provenMs: nowMs + hourMs })
  // The clock is years off, and the proof says that it is not.
  assert.equal(judgeTask(facts(text, { hostMs: 0, provenMs: nowMs })).kind, 'verified')
  refusedWith('FRESH_STATEMENT_NEEDED', text, { hostMs: nowMs - toleranceMs - 1 })
  const future = { issued_ms: nowMs + toleranceMs + 1, expires_ms: nowMs + hourMs }
  refusedWith('FRESH_STATEMENT_NEEDED', authority.task(future))
  refusedWith('TASK_EXPIRED', authority.task(future), { provenMs: nowMs })
})

test('a task that was seen is not verified again, and one that may have been forgotten is refused', () => {
  const text = authority.task({ id: taskId(5) })
  const isSeen = (id: string): boolean => id === taskId(5)
  assert.deepEqual(judgeTask(facts(text, { isSeen })), { kind: 'seen', id: taskId(5) })
  // After its expiry, and in another epoch, too.
  assert.equal(judgeTask(facts(text, { isSeen, hostMs: nowMs + 9 * hourMs, memory: null })).kind, 'seen')
  refusedWith('SEEN_BEFORE', text, { forgottenUntilMs: nowMs + hourMs })
  assert.equal(judgeTask(facts(text, { forgottenUntilMs: nowMs + hourMs - 1 })).kind, 'verified')
})

test('a task that was issued before this helper remembered anything is refused', () => {
  const text = authority.task({ issued_ms: nowMs - 1 })
  assert.equal(judgeTask(facts(text, { memory: { ...memory, rememberedSinceMs: nowMs - 1 } })).kind, 'verified')
  refusedWith('SEEN_BEFORE', text)
})

test('a task that was interrupted is begun again in its time, by a signer that counts, and never by a clock in doubt', () => {
  const record = { attempts: 2, key: verifierOf(authority.signer).key, expires_ms: nowMs + hourMs }
  const time = { hostMs: nowMs, provenMs: null, floorMs: nowMs }
  const known = (change: Partial<KeptStatement>) => ({ ...memory, statement: { ...statement, ...change } })
  assert.equal(mayBeginAgain(record, memory, time), true)
  assert.equal(mayBeginAgain(record, memory, { ...time, hostMs: nowMs - toleranceMs }), true)
  assert.equal(mayBeginAgain(record, memory, { ...time, hostMs: 0, provenMs: nowMs }), true)
  const inDoubt = { ...time, hostMs: nowMs - toleranceMs - 1 }
  assert.equal(mayBeginAgain(record, memory, inDoubt), false)
  assert.equal(mayBeginAgain(record, memory, { ...inDoubt, floorMs: 0 }), false)
  assert.equal(mayBeginAgain({ ...record, attempts: 3 }, memory, time), false)
  assert.equal(mayBeginAgain(record, null, time), false)
  assert.equal(mayBeginAgain(record, { ...memory, statement: null }, time), false)
  assert.equal(mayBeginAgain(record, known({ withdrawn: [record.key] }), time), false)
  assert.equal(mayBeginAgain(record, known({ expiresMs: nowMs }), time), false)
  // The clock of the host is within the tolerance, and what is known is later than the end of the task.
  const behind = { hostMs: nowMs - toleranceMs, provenMs: null, floorMs: nowMs }
  assert.equal(mayBeginAgain({ ...record, expires_ms: nowMs }, memory, behind), false)
  assert.equal(mayBeginAgain({ ...record, expires_ms: nowMs }, memory, { ...behind, floorMs: 0 }), false)
})
