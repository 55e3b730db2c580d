import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLogText } from './log-text.ts'

const text = openLogText(false)
const atMs = new Date(2026, 10, 17, 12, 3, 5).getTime()
const line = (fields: object): string => JSON.stringify({ level: 30, time: atMs, name: 'agent', ...fields }) + '\n'

test('a line says when, how bad, who and what, and then its fields', () => {
  assert.equal(
    text(line({ epoch: 1, why: 'first start', node: 'gpu-001', issuer: null, msg: 'channel open' })),
    '2026-11-17 12:03:05 info  agent: channel open  epoch=1 why="first start" node=gpu-001\n',
  )
  assert.equal(text(line({ level: 40, msg: 'slow' })), '2026-11-17 12:03:05 warn  agent: slow\n')
})

test('an error is its message, and from level error on the places it came from', () => {
  const err = { type: 'Error', message: 'no room', stack: 'Error: no room\n    at one (a.ts:1)\n    at two (b.ts:2)' }
  assert.equal(text(line({ level: 40, err, msg: 'x' })), '2026-11-17 12:03:05 warn  agent: x  error="no room"\n')
  assert.equal(
    text(line({ level: 50, err, msg: 'x' })),
    '2026-11-17 12:03:05 error agent: x  error="no room"\n    at one (a.ts:1)\n    at two (b.ts:2)\n',
  )
})

test('what a node has put into a field cannot move the cursor or begin a line', () => {
  const said = text(line({ node: 'a\u001b[2Jb', more: { 'k\r': 'v\n' }, msg: 'x\ny\u202e' }))
  assert.equal(said, '2026-11-17 12:03:05 info  agent: x\\x0ay\\u{202e}  node=a\\x1b[2Jb more={"k\\r":"v\\n"}\n')
})

test('colours are for terminals that want them, and what is no line of the log is passed on as text', () => {
  assert.ok(openLogText(true)(line({ level: 50, msg: 'x' })).includes('\u001b[31mx\u001b[0m'))
  assert.ok(!text(line({ level: 50, msg: 'x' })).includes('\u001b'))
  assert.equal(text('not JSON\u0007\n'), 'not JSON\\x07\n')
})
