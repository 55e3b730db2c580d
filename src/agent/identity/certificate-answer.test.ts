import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toPem } from '#pki/pem.ts'
import { hierarchy } from '../../../test/vectors/pki-hierarchy.ts'
import { faultOfNewRoots } from './certificate-answer.ts'

const rootPem = (): string => toPem('CERTIFICATE', hierarchy('p256', 1_800_000_000_000).root.certificate.der)
const [old, next, stranger] = [rootPem(), rootPem(), rootPem()]

test('roots are exchanged one after the other', () => {
  assert.equal(faultOfNewRoots([old], [old]), null)
  assert.equal(faultOfNewRoots([old], [next, old]), null)
  assert.equal(faultOfNewRoots([next, old], [next]), null)
})

test('a set with none of the roots in use is not taken: it would lock the machine out', () => {
  assert.equal(faultOfNewRoots([old], [stranger]), 'none of the roots in use')
  assert.equal(faultOfNewRoots([old], []), 'no roots, or too many')
  assert.equal(faultOfNewRoots([old], ['x', old]), 'a root is malformed')
})
