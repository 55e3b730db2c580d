import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemRandom } from '#platform/random.ts'
import { sealingKeyOf } from './seal.ts'

const keyOf = (byte: number) => sealingKeyOf(new Uint8Array(32).fill(byte), systemRandom)

test('what is sealed under a name is opened under that name', () => {
  const sealed = keyOf(1).seal('root/ab', 'the secret')
  assert.equal(keyOf(1).unseal('root/ab', sealed), 'the secret')
  assert.ok(!sealed.includes('the secret'))
})

test('sealing the same text twice shows no likeness', () => {
  assert.notEqual(keyOf(1).seal('root/ab', 'x'), keyOf(1).seal('root/ab', 'x'))
})

test('a sealed file put in the place of another is refused', () => {
  const sealed = keyOf(1).seal('issuing/ab', 'the secret')
  assert.throws(
    () => keyOf(1).unseal('root/ab', sealed),
    /root\/ab has been altered, or is another file put in its place/,
  )
})

test('another sealing key is named as the cause', () => {
  const sealed = keyOf(1).seal('root/ab', 'the secret')
  assert.throws(() => keyOf(2).unseal('root/ab', sealed), /sealed with another key \([0-9a-f]{16}\) than the one given/)
})

test('every altered character of a sealed file is noticed', () => {
  const sealed = keyOf(1).seal('root/ab', 'the secret')
  for (let at = 0; at < sealed.length - 1; at++) {
    // These two differ in the first bits too: the last bits of a base64url text may mean nothing.
    const altered = sealed.slice(0, at) + (sealed[at] === 'A' ? 'w' : 'A') + sealed.slice(at + 1)
    assert.throws(() => keyOf(1).unseal('root/ab', altered), `character ${at}`)
  }
})

test('a file of an unknown format is distinguished from an altered one', () => {
  assert.throws(
    () => keyOf(1).unseal('root/ab', 'muster-sealed-9:...'),
    /not a sealed file of a format this version knows/,
  )
})

test('where a key is that is not here is not sealed: people may read and correct it', () => {
  const reference = 'pkcs11:token=vault;object=root\n'
  assert.equal(keyOf(1).seal('root/ab', reference), reference)
  assert.equal(keyOf(1).unseal('root/ab', reference), reference)
})

test('nothing else is taken unsealed, whoever may write where keys are kept', () => {
  const reference = 'pkcs11:token=vault;object=root\n'
  for (const name of ['bearer/ab', 'statement/ab', 'issuer-secret/ab', 'journal/head', 'server/ab.cd'])
    assert.throws(() => keyOf(1).unseal(name, reference), /not a sealed file/, name)
  for (const name of ['request/ab', 'responder/ab', 'issuing/ab']) {
    const text = `${reference}-----BEGIN CERTIFICATE REQUEST-----\n`
    const sealed = keyOf(1).seal(name, text)
    assert.match(sealed, /^muster-sealed-1:/)
    assert.equal(keyOf(1).unseal(name, sealed), text)
    assert.throws(() => keyOf(1).unseal(name, text), /not a sealed file/, name)
  }
})
