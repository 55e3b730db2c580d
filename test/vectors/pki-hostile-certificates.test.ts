import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { hostileCertificates } from './pki-hostile-certificates.ts'

suite('a certificate is malformed when', () => {
  for (const { wrong, der, why } of hostileCertificates()) {
    test(wrong, () => {
      const answer = parseCertificate(der)
      assert.equal(answer.kind, 'malformed')
      assert.match(answer.why, why)
    })
  }
})
