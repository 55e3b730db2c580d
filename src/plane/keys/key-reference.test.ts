import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  elsewhereOf,
  formatReference,
  formatTransitReference,
  isReference,
  parseReference,
  parseTokenReference,
  parseTransitReference,
} from './key-reference.ts'

test('a reference names a key by its label, its id or both', () => {
  assert.deepEqual(parseReference('pkcs11:token=vault;object=root%20ca;type=private'), {
    ...{ token: 'vault', serial: null, label: 'root ca', id: null },
  })
  assert.deepEqual(parseReference('pkcs11:id=%01%fe;token=vault;serial=a1'), {
    ...{ token: 'vault', serial: 'a1', label: null, id: '01fe' },
  })
  assert.deepEqual(parseTokenReference('pkcs11:token=vault'), { token: 'vault', serial: null })
  assert.ok(isReference('pkcs11:token=x') && !isReference('-----BEGIN PRIVATE KEY-----'))
})

test('what is not one is refused, and nothing that may be a PIN is repeated', () => {
  const wrong: readonly (readonly [string, RegExp])[] = [
    ['token=vault;object=root', /begin with pkcs11:/],
    ['pkcs11:object=root', /names no token/],
    ['pkcs11:token=vault', /names no key/],
    ['pkcs11:token=vault;object=', /object is empty/],
    ['pkcs11:token=vault;object=%zz', /not percent-encoded/],
    ['pkcs11:token=vault;object=a b', /not percent-encoded/],
    ['pkcs11:token=a;token=b;object=c', /token is given twice/],
    ['pkcs11:token=a;object=%00', /object is not a text/],
    ['pkcs11:token=a;object=%ff', /object is not a text/],
    ['pkcs11:token=a;object=b;type=public', /type has to be private/],
    ['pkcs11:token=a;object=b;pin-value=271828', /an attribute that is none of/],
    ['pkcs11:token=a;object=b?pin-value=271828', /--pkcs11-pin/],
    ['pkcs11:token=a;object=b?module-path=/tmp/evil.so', /--pkcs11-module/],
    [`pkcs11:token=a;object=${'b'.repeat(600)}`, /longer than/],
  ]
  for (const [text, shape] of wrong) {
    const parsed = parseReference(text)
    assert.ok('kind' in parsed, text)
    assert.match(parsed.why, shape)
    assert.doesNotMatch(parsed.why, /271828|evil/)
  }
  assert.ok('kind' in parseTokenReference('pkcs11:token=a;object=b'))
})

test('what is formatted is read again as the same', () => {
  const label = fc.string({ minLength: 1, maxLength: 32, unit: 'grapheme-ascii' })
  const places = fc.record({
    token: label,
    serial: fc.option(label),
    label,
    id: fc.option(fc.uint8Array({ minLength: 1, maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('hex'))),
  })
  fc.assert(fc.property(places, (place) => assert.deepEqual(parseReference(formatReference(place)), { ...place })))
})

test('a reference to Transit names a key and its version, and no mount, path or server', () => {
  assert.deepEqual(parseTransitReference('transit:key=muster-root.1;version=3'), { key: 'muster-root.1', version: 3 })
  assert.deepEqual(parseTransitReference('transit:key=r'), { key: 'r', version: null })
  for (const place of [
    { key: 'muster-root', version: 12 },
    { key: 'r', version: null },
  ])
    assert.deepEqual(parseTransitReference(formatTransitReference(place)), place)
  assert.deepEqual(['transit:key=a', 'pkcs11:token=a', 'PEM'].map(elsewhereOf), ['transit', 'pkcs11', null])
  const wrong = [
    ...['pkcs11:token=a', 'transit:', 'transit:key=', 'transit:key=../sys', 'transit:key=a/b', 'transit:key=-a'],
    ...['transit:key=a;version=0', 'transit:key=a;version=x', 'transit:key=a;mount=pki', 'transit:key=a\n'],
    ...['transit:key=a;version=1?x', `transit:key=${'a'.repeat(200)}`, 'transit:key=a%2Fb'],
  ]
  for (const text of wrong) assert.ok('kind' in parseTransitReference(text), text)
})
