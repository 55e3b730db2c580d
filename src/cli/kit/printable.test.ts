import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printable, printableJson } from './printable.ts'

const hostile = 'gpu\u001b[2J\u0007\r\nx\u009b31m\u202etxt.\u2028\ufeff'

test('escape sequences and characters that turn the reading direction become visible', () => {
  assert.equal(printable(hostile), 'gpu\\x1b[2J\\x07\\x0d\\x0ax\\x9b31m\\u{202e}txt.\\u{2028}\\u{feff}')
  assert.equal(printable('Größe 10 µm – 漢字'), 'Größe 10 µm – 漢字')
})

test('JSON stays the same value and holds no character a terminal acts on', () => {
  const text = printableJson({ id: hostile, tag: '\u{e0041}' }, 2)
  assert.deepEqual(JSON.parse(text), { id: hostile, tag: '\u{e0041}' })
  assert.match(text.replaceAll('\n', ''), /^[ -~]+$/)
})
