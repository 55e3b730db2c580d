import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openLineBuffer, type LineBuffer } from './line-buffer.ts'

const taken = (lines: LineBuffer): string[] => {
  const found: string[] = []
  for (let line = lines.take(); line !== null; line = lines.take()) found.push(line.toString('utf8'))
  return found
}

test('lines are those of the text, however its bytes are divided', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: fc.constantFrom('a', 'ä', '\n') })), (parts) => {
      const lines = openLineBuffer()
      const found = parts.flatMap((part) => {
        lines.add(Buffer.from(part))
        return taken(lines)
      })
      const all = parts.join('').split('\n')
      const rest = all.pop() ?? ''
      assert.deepEqual(found, all)
      assert.deepEqual([lines.length(), lines.hasLine()], [Buffer.byteLength(rest), false])
      lines.add(Buffer.from('\n'))
      assert.ok(lines.hasLine())
      assert.deepEqual(taken(lines), [rest])
    }),
  )
})

// With a copy of the rest for each line, or of the beginning for each byte, neither would end within an hour.
test('millions of blank lines, and a long line that comes byte by byte, are read at once', () => {
  const blank = openLineBuffer()
  blank.add(Buffer.alloc(4 << 20, '\n'))
  let count = 0
  while (blank.take() !== null) count += 1
  assert.equal(count, 4 << 20)

  const long = openLineBuffer()
  const byte = Buffer.from('x')
  for (let sent = 0; sent < 1 << 20; sent++) {
    long.add(byte)
    if (sent % 64 === 0) assert.equal(long.hasLine(), false)
  }
  long.add(Buffer.from('\n'))
  assert.equal(long.take()?.length, 1 << 20)
})
