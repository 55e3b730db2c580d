import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toPem } from '#pki/pem.ts'
import { hierarchy, nowMs, type Hierarchy } from '../../../test/vectors/pki-hierarchy.ts'
import type { AgentRecovery, Generation } from './credentials.ts'
import { rootOfChain, trustOf } from './trust.ts'

const [plane, issuer] = [hierarchy('p256', nowMs), hierarchy('p256', nowMs)]
const pemOf = ({ root }: Hierarchy): string => toPem('CERTIFICATE', root.certificate.der)
const chainOf = ({ issuing, domainCa }: Hierarchy): string =>
  [issuing, domainCa].map(({ certificate }) => toPem('CERTIFICATE', certificate.der)).join('')

test('a chain is under the root that signed its last certificate, not under one of the same name', () => {
  assert.equal(rootOfChain(chainOf(issuer), [pemOf(plane), pemOf(issuer)]), pemOf(issuer))
  assert.equal(rootOfChain(chainOf(issuer), [pemOf(plane)]), null)
  assert.equal(rootOfChain(chainOf(issuer), ['no certificate']), null)
  assert.equal(rootOfChain('no chain', [pemOf(issuer)]), null)
})

test('R-101: what the plane is known by and what the certificate is under are two facts', () => {
  const recovery: AgentRecovery = {
    trust: { roots: [pemOf(issuer)], statement_keys: [] },
    credential: { kind: 'none' },
  }
  const trusted = (rootPem: string | null) =>
    trustOf({ roots: [pemOf(plane)], recovery, current: { rootPem } as Generation })
  assert.deepEqual(trusted(pemOf(issuer)), {
    plane: [plane.root.certificate.sha256],
    recovery: [issuer.root.certificate.sha256],
    certificate: issuer.root.certificate.sha256,
  })
  assert.equal(trusted(null).certificate, null)
})
