import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { contextOf, orMalformed, readDer, tags } from './der.ts'
import { readAny, readInteger, readNamedBits, readOid, readSmallNumber, readWholeBits } from './der-values.ts'
import {
  bits,
  constructed,
  type Der,
  encode,
  namedBits,
  octets,
  oid,
  sequence,
  smallNumber,
  text,
  unsigned,
} from './der-writer.ts'

const bytes = fc.uint8Array({ maxLength: 300 })

test('what is written is read back: integers, bits, object identifiers', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      bytes,
      fc.uniqueArray(fc.nat({ max: 20 })),
      fc.tuple(fc.constantFrom(1, 2), fc.nat({ max: 39 }), fc.array(fc.nat(), { maxLength: 8 })),
      (number, whole, named, [top, second, rest]) => {
        const dotted = [top, second, ...rest].join('.')
        const der = encode(sequence(smallNumber(number), bits(whole), namedBits(named), oid(dotted), unsigned(whole)))
        readDer(der, (reader) => {
          const inside = reader.inside(tags.sequence)
          assert.equal(readSmallNumber(inside), number)
          assert.deepEqual(Uint8Array.from(readWholeBits(inside)), whole)
          assert.deepEqual(
            readNamedBits(inside),
            named.toSorted((a, b) => a - b),
          )
          assert.equal(readOid(inside), dotted)
          assert.equal(bigint(readInteger(inside)), bigint(whole))
          inside.finish()
        })
      },
    ),
  )
})

const bigint = (value: Uint8Array): bigint => BigInt('0x0' + Buffer.from(value).toString('hex'))

const tree: fc.Arbitrary<Der> = fc.letrec<{ node: Der }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 6 },
    fc.uint8Array({ maxLength: 400 }).map(octets),
    fc.nat().map(smallNumber),
    fc.string({ unit: 'grapheme' }).map((value) => text(tags.utf8String, value)),
    fc.array(tie('node'), { maxLength: 4 }).map((members) => sequence(...members)),
    fc.array(tie('node'), { maxLength: 4 }).map((members) => constructed(contextOf(1), members)),
  ),
})).node

test('whatever the writer writes is well-formed, and nothing shorter or longer is', () => {
  fc.assert(
    fc.property(tree, (node) => {
      const der = encode(node)
      assert.equal(der.length, node.size)
      assert.equal(isWellFormed(der), true)
      assert.equal(isWellFormed(der.subarray(0, -1)), false)
      assert.equal(isWellFormed(Uint8Array.of(...der, 0)), false)
    }),
  )
})

test('arbitrary bytes are well-formed or malformed, and never anything worse', () => {
  fc.assert(fc.property(bytes, (der) => typeof isWellFormed(der) === 'boolean'))
})

const isWellFormed = (der: Uint8Array): boolean => orMalformed(() => readDer(der, readAny)) === undefined

suite('DER has one encoding for one value, so this is malformed:', () => {
  const cases: readonly [wrong: string, hex: string][] = [
    ['an indefinite length', '30800000'],
    ['a length in the long form that fits the short one', '04810100'],
    ['a length with a leading zero', '0482000100'],
    ['a length of four bytes', '048400000001' + '00'],
    ['a length beyond the end', '040200'],
    ['a length without its bytes', '0482'],
    ['a tag alone', '04'],
    ['a tag of two bytes', '1f8101' + '00'],
    ['a boolean of 01', '010101'],
    ['an empty boolean', '0100'],
    ['an empty integer', '0200'],
    ['an integer with a needless 00', '0202007f'],
    ['an integer with a needless ff', '0202ff80'],
    ['a null with content', '050100'],
    ['an empty bit string', '0300'],
    ['a bit string with 8 unused bits', '03020800'],
    ['a bit string of unused bits only', '030101'],
    ['a bit string with unused bits set', '03020101'],
    ['an object identifier that starts with 80', '060280' + '01'],
    ['an object identifier that does not end', '060155'.replace('55', '81')],
    ['an object identifier with a part beyond 2^53', '060a' + 'ff'.repeat(9) + '7f'],
    ['an object identifier of 70 bytes', '0646' + '01'.repeat(70)],
    ['a primitive sequence', '1000'],
    ['a constructed octet string', '2403040100'],
    ['an end-of-contents', '0000'],
    ['a set out of order', '3106020102020101'],
    ['nothing', ''],
  ]
  for (const [wrong, hex] of cases) test(wrong, () => assert.equal(isWellFormed(Buffer.from(hex, 'hex')), false))
})

test('nesting is bounded', () => {
  const nested = (depth: number): Der => (depth === 0 ? smallNumber(1) : sequence(nested(depth - 1)))
  assert.equal(isWellFormed(encode(nested(15))), true)
  assert.equal(isWellFormed(encode(nested(17))), false)
  assert.equal(isWellFormed(Buffer.from('30'.repeat(100_000), 'hex')), false)
})
