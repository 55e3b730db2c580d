import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { orMalformed, readDer } from './der.ts'
import { encodeName, nameProblem, readName } from './name.ts'

const shown = (cn: string | null, o: string | null, ou: string | null): string =>
  readDer(encodeName({ cn, o, ou }), readName)

test('a name is shown in the order CN, O, OU, without what it lacks', () => {
  assert.equal(shown('node-gpu-001', 'example', 'nodes'), 'CN=node-gpu-001, O=example, OU=nodes')
  assert.equal(shown('Zürich', null, null), 'CN=Zürich')
  assert.equal(shown(null, null, null), '')
})

test('a name cannot pretend to be two parts or two lines', () => {
  assert.equal(shown('a, O=b', null, null), 'CN=a\\2c O\\3db')
  assert.equal(shown('a\u2028b\u202e', null, null), 'CN=a\\e2\\80\\a8b\\e2\\80\\ae')
})

test('A7: a value that OpenSSL would refuse is refused: no string, or a string cut within a character', () => {
  // A name with one part, CN, whose value is these bytes.
  const named = (value: readonly number[]): Uint8Array => {
    const attribute = [0x06, 0x03, 0x55, 0x04, 0x03, ...value]
    const part = [0x30, attribute.length, ...attribute]
    return Uint8Array.of(0x30, part.length + 2, 0x31, part.length, ...part)
  }
  for (const value of [
    [0x1e, 0x03, 0x00, 0x41, 0x00],
    [0x1c, 0x02, 0x00, 0x41],
    [0x07, 0x01, 0x41],
    [0x04, 0x01, 0x41],
    [0x03, 0x02, 0x00, 0x41],
    [0x30, 0x00],
  ])
    assert.equal(typeof orMalformed(() => readDer(named(value), readName)), 'object', String(value))
  assert.equal(readDer(named([0x1e, 0x02, 0x00, 0x41]), readName), 'CN=(not shown)')
  assert.equal(readDer(named([0x14, 0x01, 0x41]), readName), 'CN=(not shown)')
})

test('the bounds of RFC 5280 count characters', () => {
  assert.equal(nameProblem({ cn: 'ü'.repeat(64), o: null, ou: null }), null)
  assert.match(nameProblem({ cn: 'a'.repeat(65), o: null, ou: null }) ?? '', /cn has 65 characters/)
  assert.match(nameProblem({ cn: null, o: 'a'.repeat(65), ou: null }) ?? '', /^o /)
  assert.match(nameProblem({ cn: null, o: null, ou: '' }) ?? '', /ou is empty/)
  assert.match(nameProblem({ cn: 'a\nb', o: null, ou: null }) ?? '', /do not belong/)
  assert.match(nameProblem({ cn: '\ud800', o: null, ou: null }) ?? '', /do not belong/)
})

test('every name without a problem can be written and read', () => {
  const part = fc.option(fc.string({ unit: fc.constantFrom(...'ab ü,=\n\u202e😀', '\ud800'), maxLength: 70 }))
  fc.assert(
    fc.property(part, part, part, (cn, o, ou) => {
      if (nameProblem({ cn, o, ou }) === null) shown(cn, o, ou)
      else assert.throws(() => encodeName({ cn, o, ou }))
    }),
  )
})
