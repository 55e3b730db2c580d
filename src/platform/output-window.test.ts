import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openOutputWindow } from './output-window.ts'

test('the first and the last bytes are kept once, in whatever pieces they come', () => {
  const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 24 }), { maxLength: 12 })
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 16 }), (parts, most) => {
      const window = openOutputWindow(most)
      for (const part of parts) window.add(Buffer.from(part))
      const all = parts.join('')
      const tail = all.slice(most).slice(-most)
      assert.deepEqual(window.text(), { head: all.slice(0, most), tail, bytes: all.length })
    }),
  )
})

test('what a terminal would obey and what is no text becomes a mark', () => {
  const window = openOutputWindow(16)
  window.add(Buffer.from('a\tb\r\n\x1b[2J\xff', 'latin1'))
  assert.equal(window.text().head, 'a\tb\ufffd\n\ufffd[2J\ufffd')
})
