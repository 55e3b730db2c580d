import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allFromPem, fromPem, toPem } from './pem.ts'

test('a block is read back as it was written, whatever its line ends', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 500 }), (der) => {
      const text = toPem('CERTIFICATE', der)
      for (const variant of [text, text.replaceAll('\n', '\r\n'), `\n${text}\n \n`, text.trimEnd()]) {
        const back = fromPem('CERTIFICATE', variant)
        assert.ok(back !== null)
        assert.deepEqual(Uint8Array.from(back), der)
      }
    }),
  )
})

test('several blocks are read in their order, and are not one block', () => {
  const text = toPem('X', Uint8Array.of(1)) + '\n' + toPem('X', Uint8Array.of(2))
  const all = allFromPem('X', text)
  assert.deepEqual(
    all?.map((der) => der[0]),
    [1, 2],
  )
  assert.equal(fromPem('X', text), null)
})

test('anything but blocks of the label asked for is refused', () => {
  const good = toPem('X', Uint8Array.of(1, 2, 3, 4))
  const bad = [
    '',
    'words',
    toPem('Y', Uint8Array.of(1)),
    `words\n${good}`,
    `${good}words`,
    good.replace('AQIDBA==', 'AQIDBA'),
    good.replace('AQIDBA==', 'AQIDBB=='),
    good.replace('AQIDBA==', 'AQ IDBA=='),
    good.replace('AQIDBA==', 'AQ-_BA=='),
    good.replace('AQIDBA==', ''),
    good.replace('AQIDBA==\n', 'AQIDBA=='),
    good.replace('-----END X-----', ''),
    good.replace('-----END X-----', '-----END Y-----'),
    good.replace('-----BEGIN X-----', '-----BEGIN Y-----'),
    good + '-----BEGIN X-----',
    'A'.repeat(2_000_000),
  ]
  for (const text of bad) assert.equal(allFromPem('X', text), null, text.slice(0, 80))
})
