import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allFromPem, toPem } from '#pki/pem.ts'
import { shownToPlane } from './verified-connection.ts'

const leaf = toPem('CERTIFICATE', Uint8Array.of(0x30, 1, 1))
const issuing = toPem('CERTIFICATE', Uint8Array.of(0x30, 1, 2))

test('a plane is shown the leaf without its chain', () => {
  const { certPem, keyPem } = shownToPlane({ chainPem: leaf + issuing, keyPem: 'the key' })
  assert.equal(keyPem, 'the key')
  assert.deepEqual(allFromPem('CERTIFICATE', certPem), allFromPem('CERTIFICATE', leaf))
})

test('what is no list of certificates is shown as it is', () => {
  assert.equal(shownToPlane({ chainPem: 'not PEM', keyPem: 'the key' }).certPem, 'not PEM')
})
