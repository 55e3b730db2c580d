import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readDer } from './der.ts'
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
