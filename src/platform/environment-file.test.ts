import assert from 'node:assert/strict'
import { test } from 'node:test'
import { environmentText } from './environment-file.ts'

test('values are quoted as systemd reads them, and what it would leave out is refused', () => {
  const env = { PLAIN: 'a b', ODD: 'say "$HOME" \\ `x`', LINES: 'one\n two\tthree', EMPTY: '' }
  assert.equal(
    environmentText(env),
    'PLAIN="a b"\nODD="say \\"\\$HOME\\" \\\\ \\`x\\`"\nLINES="one\n two\tthree"\nEMPTY=""\n',
  )
  assert.throws(() => environmentText({ BELL: 'a\u0007' }), /variable BELL has a control character/)
})
