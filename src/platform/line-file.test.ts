import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { linesOf } from './line-file.ts'

const place = (t: TestContext): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-lines-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  return path.join(folder, 'lines')
}

const read = (file: string, longest = 1000): [string, boolean][] =>
  [...linesOf(file, longest)].map(({ bytes, ended }) => [Buffer.from(bytes).toString('utf8'), ended])

test('lines longer than a piece are read whole, and too long ones are not', (t) => {
  const file = place(t)
  const long = 'ab'.repeat(1 << 20)
  fs.writeFileSync(file, `first\n${long}\n\nlast`)
  assert.deepEqual(read(file, 4 << 20), [
    ['first', true],
    [long, true],
    ['', true],
    ['last', false],
  ])
  assert.deepEqual(
    read(file, 1 << 20).map(([text, ended]) => [text.length, ended]),
    [
      [5, true],
      [1 << 20, false],
    ],
  )
})
