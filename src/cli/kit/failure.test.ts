import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusals } from '#domain/core/refusal-table.ts'
import { agentExitCodes } from '#agent/core/outcome.ts'
import { openHints } from './as-called.ts'
import { exitCodeMeanings, exitCodeNames, exitCodeOf, exitCodes } from './exit-codes.ts'
import { Failure, failureBody, fillIn, renderFailure } from './failure.ts'

const caller = openHints('./muster')

test('a failure prints its code, its detail and a command that can be pasted', () => {
  const failure = new Failure({
    exit: exitCodes.refused,
    code: 'NODE_QUARANTINED',
    sentence: 'This node is in quarantine.',
    detail: 'since yesterday',
    next: fillIn('Find out why (muster node show ID), then: muster node release ID', { ID: 'gpu-001' }),
    retryAfterMs: 1500,
  })
  assert.deepEqual(renderFailure(failure, caller), [
    'error NODE_QUARANTINED: This node is in quarantine.',
    'detail: since yesterday',
    'retry: in 2s',
    'next: Find out why (./muster node show gpu-001), then: ./muster node release gpu-001',
  ])
})

test('a name that a shell would take apart is not put into a command', () => {
  assert.equal(fillIn('muster node show ID', { ID: 'x; rm -rf ~' }), 'muster node show ID')
  assert.equal(fillIn('muster node show ID', { ID: '$(reboot)' }), 'muster node show ID')
})

test('-o json names the field at fault where there is one', () => {
  const bodyOf = (field?: string) =>
    failureBody(new Failure({ exit: 1, code: 'X', sentence: 'No.', ...(field === undefined ? {} : { field }) }), caller)
  const error = { code: 'X', message: 'No.', detail: null, next: null, retry_after_ms: null, exit_code: 1 }
  assert.deepEqual(bodyOf(), { error })
  assert.deepEqual(bodyOf('set.drainMs'), { error: { ...error, field: 'set.drainMs' } })
})

test('only whole words are filled in', () => {
  assert.equal(fillIn('IDENTITY of ID', { ID: 'gpu-1' }), 'IDENTITY of gpu-1')
})

test('what the plane sends cannot act on the terminal', () => {
  const failure = new Failure({ exit: 1, code: 'X', sentence: 'a\u001b[2Jb', detail: 'c\nd', next: 'e\u202ef' })
  assert.deepEqual(renderFailure(failure, caller), ['error X: a\\x1b[2Jb', 'detail: c\\x0ad', 'next: e\\u{202e}f'])
})

test('every refusal has an exit code that says what kind of no it is', () => {
  const codeOf = (code: keyof typeof refusals) => exitCodeOf(code, refusals[code].status)
  assert.equal(codeOf('NODE_NOT_FOUND'), exitCodes.notFound)
  assert.equal(codeOf('ROLE_FORBIDDEN'), exitCodes.notAllowed)
  assert.equal(codeOf('OPERATOR_KEY_INVALID'), exitCodes.notAllowed)
  assert.equal(codeOf('BUSY'), exitCodes.tryLater)
  assert.equal(codeOf('CUT_OFF_PENDING'), exitCodes.inForceHereOnly)
  assert.equal(codeOf('RATE_LIMITED'), exitCodes.tryLater)
  assert.equal(codeOf('NODE_ALREADY_ENROLLED'), exitCodes.refused)
  assert.equal(exitCodeOf('SOMETHING_NEWER', 500), exitCodes.fault)
  for (const code of Object.keys(refusals) as (keyof typeof refusals)[]) {
    assert.ok([1, 3, 4, 9, 75].includes(codeOf(code)), `${code} exits with ${codeOf(code)}`)
  }
})

test('exit codes differ, and all are explained, those of the agent too', () => {
  assert.equal(new Set(Object.values(exitCodes)).size, exitCodeNames.length)
  for (const name of exitCodeNames) assert.notEqual(exitCodeMeanings[name], '')
  const known: readonly number[] = Object.values(exitCodes)
  for (const code of Object.values(agentExitCodes)) assert.ok(known.includes(code), String(code))
})
