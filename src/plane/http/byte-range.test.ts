import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'node:test'
import { askedBytes } from './byte-range.ts'

const etag = '"abc"'
const asked = (range: string | undefined, ifRange?: string) => askedBytes({ range, ifRange }, etag, 1000)
const whole = { kind: 'whole' }
const unsatisfiable = { kind: 'unsatisfiable' }

test('a range has a first and a last byte, only a first, or only a length from the end', () => {
  assert.deepEqual(asked('bytes=0-99'), { kind: 'part', from: 0, to: 99 })
  assert.deepEqual(asked('bytes=500-'), { kind: 'part', from: 500, to: 999 })
  assert.deepEqual(asked('bytes=-100'), { kind: 'part', from: 900, to: 999 })
  assert.deepEqual(asked('Bytes= 5-5 '), { kind: 'part', from: 5, to: 5 })
})

test('a range that goes beyond the end ends there, and one that begins beyond it is refused', () => {
  assert.deepEqual(asked('bytes=990-5000'), { kind: 'part', from: 990, to: 999 })
  assert.deepEqual(asked('bytes=-5000'), { kind: 'part', from: 0, to: 999 })
  assert.deepEqual(asked(`bytes=0-${'9'.repeat(400)}`), { kind: 'part', from: 0, to: 999 })
  assert.deepEqual(asked('bytes=1000-'), unsatisfiable)
  assert.deepEqual(asked(`bytes=${'9'.repeat(400)}-`), unsatisfiable)
  assert.deepEqual(asked('bytes=-0'), unsatisfiable)
  assert.deepEqual(askedBytes({ range: 'bytes=0-' }, etag, 0), unsatisfiable)
})

test('several ranges, another unit and what is no range are answered with the whole file', () => {
  for (const range of [
    undefined,
    '',
    'bytes=',
    'bytes=-',
    'bytes=0-1,5-9',
    'lines=0-9',
    'bytes=9-5',
    'bytes=a-b',
    '0-9',
  ])
    assert.deepEqual(asked(range), whole, String(range))
})

test('a range is given only to a caller that has the rest of the same bytes', () => {
  assert.deepEqual(asked('bytes=5-9', etag), { kind: 'part', from: 5, to: 9 })
  for (const other of ['"abd"', 'W/"abc"', 'Tue, 17 Nov 2026 12:00:00 GMT', ''])
    assert.deepEqual(asked('bytes=5-9', other), whole, other)
})

test('whatever is asked for, a part lies within the file', () => {
  fc.assert(
    fc.property(fc.nat(3000), fc.option(fc.nat(3000)), fc.option(fc.nat(3000)), (length, first, last) => {
      const got = askedBytes({ range: `bytes=${first ?? ''}-${last ?? ''}` }, etag, length)
      if (got.kind === 'part') assert.ok(0 <= got.from && got.from <= got.to && got.to < length)
    }),
  )
})
