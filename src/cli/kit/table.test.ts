import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paintFor, plain } from './print.ts'
import { renderFacts, renderTable } from './table.ts'

test('columns are aligned, and no line ends in blanks', () => {
  const lines = renderTable(
    [
      ['gpu-1', 'active', ''],
      ['a-longer-name', 'revoked', 'cert_expired'],
    ],
    plain,
  )
  assert.deepEqual(lines, ['gpu-1          active', 'a-longer-name  revoked  cert_expired'])
})

test('what a node named itself cannot move the cursor', () => {
  assert.deepEqual(renderTable([['a\u001b[A\nb', 'c']], plain), ['a\\x1b[A\\x0ab  c'])
  assert.deepEqual(renderFacts([['node', 'a\u001b[A']]), ['node  a\\x1b[A'])
})

test('colour is for terminals, and NO_COLOR or a dumb terminal turns it off', () => {
  const shown = (isTerminal: boolean, env: Record<string, string>) => paintFor({ isTerminal }, env)('red', 'x')
  assert.equal(shown(true, {}), '\u001b[31mx\u001b[0m')
  assert.equal(shown(false, {}), 'x')
  assert.equal(shown(true, { NO_COLOR: '1' }), 'x')
  assert.equal(shown(true, { TERM: 'dumb' }), 'x')
})

test('colour does not disturb the alignment', () => {
  const paint = paintFor({ isTerminal: true }, {})
  const [first] = renderTable(
    [
      [{ text: 'up', colour: 'green' }, 'x'],
      ['longer', 'y'],
    ],
    paint,
  )
  assert.equal(first, '\u001b[32mup\u001b[0m      x')
})

test('a fact of several lines continues under its first', () => {
  const lines = renderFacts([
    ['why', ['one', 'two']],
    ['profile', 'p'],
  ])
  assert.deepEqual(lines, ['why      one', '         two', 'profile  p'])
})
