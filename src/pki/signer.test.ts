import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { describe, test } from 'node:test'
import { authority, day, hierarchy, nodeOrder, nowMs, parsed, serial } from '../../test/vectors/pki-hierarchy.ts'
import { leafSpec, responderSpec } from './authority-certificates.ts'
import { buildCertificate } from './certificate.ts'
import { buildCrl, type CrlSpec } from './crl.ts'
import { generateKey, type PrivateKey, verifySignature } from './keys.ts'
import { buildOcspResponse, type OcspAnswer } from './ocsp-response.ts'
import { isSignedBy } from './parse-certificate.ts'
import { parseCrl } from './parse-crl.ts'
import type { Signer } from './signer.ts'

const { issuing } = hierarchy('p256', nowMs)
const { key, certificate: issuer } = issuing
const node = generateKey('ed25519')

const spec = leafSpec(nodeOrder(node, {}), issuer, serial())
const list: CrlSpec = {
  ...{ issuer: issuer.subjectName, authorityKeyId: issuer.subjectKeyId ?? '', number: 1, baseNumber: null },
  ...{ thisUpdateMs: nowMs, nextUpdateMs: nowMs + day, entries: [], freshestUrl: null },
}
const answer: OcspAnswer = {
  answers: [],
  ...{ producedAtMs: nowMs, thisUpdateMs: nowMs, nextUpdateMs: nowMs + day, nonce: null },
}
const responder = buildCertificate(responderSpec(authority(node, day, nowMs), issuer), key)

/** As a token or a key service: what it signs is there some turns of the loop later. */
const elsewhere = ({ type, spki, sign }: PrivateKey): Signer => ({
  type,
  spki,
  sign: (data) => new Promise((resolve) => setImmediate(() => resolve(sign(data)))),
})

const promisesDuring = (run: () => void): number => {
  let promises = 0
  const hook = createHook({ init: (_id, type) => void (type === 'PROMISE' && promises++) }).enable()
  run()
  hook.disable()
  return promises
}

test('a key in this process makes no promise, whatever it signs', () => {
  const seen = promisesDuring(() => void Promise.resolve())
  assert.ok(seen > 0, 'a promise would be seen')
  const made = promisesDuring(() => {
    assert.ok(buildCertificate(spec, key) instanceof Uint8Array)
    assert.ok(buildCrl(list, key) instanceof Uint8Array)
    assert.ok(buildOcspResponse(answer, { key, certificate: responder }) instanceof Uint8Array)
  })
  assert.equal(made, 0)
})

describe('a key elsewhere signs the same things', () => {
  const remote = elsewhere(key)

  test('certificates', async () => {
    assert.ok(isSignedBy(parsed(await buildCertificate(spec, remote)), issuer))
  })

  test('revocation lists', async () => {
    const parsedList = parseCrl(await buildCrl(list, remote))
    assert.ok(parsedList.kind !== 'malformed')
    assert.ok(verifySignature(key.spki, parsedList.tbs, parsedList.signature))
  })

  test('answers about the status of certificates', async () => {
    const here = buildOcspResponse(answer, { key: node, certificate: responder })
    const there = await buildOcspResponse(answer, { key: elsewhere(node), certificate: responder })
    // Ed25519 signs the same bytes the same way each time.
    assert.deepEqual(there, here)
  })

  test('an error of the key is the error of what it was to sign', async () => {
    const pulled: Signer = { ...remote, sign: () => Promise.reject(new Error('the token is not there')) }
    await assert.rejects(async () => buildCertificate(spec, pulled), /the token is not there/)
  })
})
