import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { failureClasses } from '#domain/core/node.ts'
import { codeSentences, nextStepOf } from './short-code-words.ts'
import { decodeShortCode, encodeShortCode, nodeMark, shortPlaces, type DecodedCode, type Range } from './short-code.ts'

const year = 365 * 86_400_000
const signedMs = fc.option(fc.integer({ min: -20 * year, max: 20 * year }), { nil: null })
const facts = fc.record({
  class: fc.constantFrom(null, 'node_observability_disk_pressure' as const, ...failureClasses),
  place: fc.constantFrom(...shortPlaces),
  certificateLeftMs: signedMs,
  clockBehindMs: signedMs,
  attempts: fc.nat(),
  cause: fc.constantFrom(null, 'ENOSPC', 'EROFS', 'NODE_REVOKED', 'REPAIR_TOKEN_INVALID', 'SOMETHING_NEW'),
  freeBytes: fc.option(fc.nat({ max: Number.MAX_SAFE_INTEGER }), { nil: null }),
  silentMs: fc.option(fc.nat({ max: 20 * year }), { nil: null }),
  nodeMark: fc.nat({ max: 2 ** 25 - 1 }),
})

const decoded = (code: string): DecodedCode => {
  const parsed = decodeShortCode(code)
  assert.ok(parsed.kind === 'code', `${code} is ${parsed.kind}`)
  return parsed.facts
}

const holds = (range: Range | null, value: number | null): boolean =>
  range === null || value === null ? range === value : range.from <= value && value < range.to

test('a code says what was put into it, in ranges that hold the figures', () => {
  fc.assert(
    fc.property(facts, (given) => {
      const code = encodeShortCode(given)
      assert.match(code, /^MX(-[0-9A-HJKMNP-TV-Z]{4}){3}$/)
      const found = decoded(code)
      assert.equal(found.class, given.class)
      assert.equal(found.place, given.place)
      assert.equal(found.nodeMark, given.nodeMark)
      assert.equal(found.cause, given.cause === 'SOMETHING_NEW' ? 'other' : given.cause)
      for (const name of ['certificateLeftMs', 'clockBehindMs', 'attempts', 'freeBytes', 'silentMs'] as const)
        assert.ok(holds(found[name], given[name]), name)
      assert.ok(codeSentences(found).every((sentence) => !/undefined|NaN|Infinity/.test(sentence)))
      assert.notEqual(nextStepOf(found.class), '')
    }),
  )
})

test('every single wrong character, and every two that are swapped, are noticed', () => {
  const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  fc.assert(
    fc.property(facts, (given) => {
      const characters = [...encodeShortCode(given).slice(2).replaceAll('-', '')]
      const kindOf = (changed: readonly string[]): string => decodeShortCode(`MX${changed.join('')}`).kind
      for (const [at, right] of characters.entries()) {
        for (const wrong of alphabet) if (wrong !== right) assert.equal(kindOf(characters.with(at, wrong)), 'mistyped')
        for (const [other, letter] of characters.entries()) {
          if (letter === right) continue
          assert.equal(kindOf(characters.with(at, letter).with(other, right)), 'mistyped')
        }
      }
    }),
    { numRuns: 20 },
  )
})

test('how a code is typed does not matter, nor letters that look like digits', () => {
  fc.assert(
    fc.property(facts, (given) => {
      const code = encodeShortCode(given)
      const found = decoded(code)
      const alike = code.slice(3).replaceAll('0', 'o').replaceAll('1', 'l').toLowerCase()
      for (const typed of [code.toLowerCase(), code.replaceAll('-', ' '), code.slice(3), `  mx${alike}\n`])
        assert.deepEqual(decoded(typed), found)
    }),
  )
})

test('what is no code is not taken for one', () => {
  for (const text of ['', 'MX', 'MX-0000-0000-000', 'MX-0000-0000-00000', 'MX-UUUU-0000-0000', 'gpu-001'])
    assert.equal(decodeShortCode(text).kind, 'no-code')
})

test('ten thousand nodes hardly ever share a mark', () => {
  const marks = new Set(Array.from({ length: 10_000 }, (_, index) => nodeMark('example.test', `gpu-${index}`)))
  assert.ok(marks.size > 9_990, String(marks.size))
  assert.ok([...marks].every((mark) => mark > 0 && mark < 2 ** 25))
})

test('a code in sentences', () => {
  const hour = 3_600_000
  const found = decoded(
    encodeShortCode({
      class: 'disk_full',
      place: 'renewal',
      certificateLeftMs: -2 * hour,
      clockBehindMs: 0,
      attempts: 9,
      cause: 'ENOSPC',
      freeBytes: 0,
      silentMs: 4 * hour,
      nodeMark: nodeMark('example.test', 'gpu-001'),
    }),
  )
  assert.deepEqual(codeSentences(found), [
    'disk_full at renewal: ENOSPC, tried 8 to 15 times.',
    'Its certificate had expired 1 h to 6 h before.',
    'Its disk had less than 64 KiB free.',
    'It had last spoken with the plane 3 h to 6 h before.',
  ])
})
