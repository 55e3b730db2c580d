import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newWireguardKey, wireguardKeyFrom } from './wireguard-key.ts'

test('the public key is the one that RFC 7748 derives from the private key', () => {
  const hex = (text: string): string => Buffer.from(text, 'hex').toString('base64')
  const pair = wireguardKeyFrom(hex('77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a'))
  assert.equal(pair?.publicKey, hex('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a'))
})

test('every new key is another one, and is read back as it was', () => {
  const [one, other] = [newWireguardKey(), newWireguardKey()]
  assert.notEqual(one.privateKey, other.privateKey)
  assert.deepEqual(wireguardKeyFrom(one.privateKey), one)
})

test('what is no key is not taken for one', () => {
  for (const text of ['', 'x', 'A'.repeat(43), `${'A'.repeat(43)}=\n`, `${'A'.repeat(42)}B=`]) {
    assert.equal(wireguardKeyFrom(text), null, text)
  }
})
