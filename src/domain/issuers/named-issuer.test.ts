import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expectRefused } from '../../../test/fakes/expect-decision.ts'
import { outsideIssuer } from '../../../test/fakes/issuer-rows.ts'
import { hour, noonMs, row } from '../../../test/fakes/sample-rows.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import type { OutsideIssuer } from './outside-issuer.ts'
import { namedByOutputs, namedByWorkers, outputsNaming, roleFor, signedByThem, unfitToSign } from './named-issuer.ts'

const abilities = { testedAtMs: noonMs, takesSerial: true, revokes: true, lists: false, longestMs: 24 * hour }
const vault = (roles: Readonly<Record<string, string>>): OutsideIssuer =>
  outsideIssuer({
    abilities,
    access: { kind: 'vault', namespace: null, mount: 'pki', roles, login: { kind: 'token' } },
  })

const web = { name: 'web', lifetimeMs: 24 * hour, issuer: 'corp' }

test('a role is for one profile, output or worker issuer, or for all others of that sort', () => {
  const roles = { edge: 'a', '*': 'b', 'output:web': 'c', 'worker:*': 'd' }
  const kinds = ['edge', 'other', 'output:web', 'output:db', 'worker:east', 'constructor']
  assert.deepEqual(
    kinds.map((kind) => roleFor(roles, kind)),
    ['a', 'b', 'c', null, 'd', 'b'],
  )
  assert.equal(roleFor({ edge: 'a' }, 'constructor'), null)
})

test('an output and workers need a role of their own at a Vault, and a test for their lifetime', () => {
  const [output] = namedByOutputs([web])
  assert.ok(output !== undefined)
  assert.equal(unfitToSign(output, vault({ 'output:web': 'x' })), null)
  expectRefused(unfitToSign(output, vault({ '*': 'x' })) ?? assert.fail(), 'ISSUER_NOT_READY', /--role output:web=ROLE/)
  const workers = namedByWorkers('east', 'corp', 48 * hour)
  expectRefused(
    unfitToSign(workers, vault({ 'worker:*': 'x' })) ?? assert.fail(),
    'ISSUER_NOT_READY',
    /issuer test corp --worker-issuer east --lifetime 172800000ms/,
  )
})

test('only outputs that have changed are asked for, and what names an issuer relies on its row', () => {
  assert.deepEqual(namedByOutputs([web], [web]), [])
  assert.equal(namedByOutputs([web], [{ ...web, lifetimeMs: hour }]).length, 1)
  const corp = row(outsideIssuer({ abilities }))
  const reads = signedByThem(namedByOutputs([web, { ...web, name: 'db' }]), [corp])
  assert.ok(!isRefusal(reads))
  assert.deepEqual(reads, [{ row: 'outside-issuer', key: 'corp', version: corp.version }])
  assert.deepEqual(signedByThem(namedByOutputs([{ name: 'web', lifetimeMs: hour }]), []), [])
  assert.deepEqual(outputsNaming('corp', [web, { name: 'db', lifetimeMs: hour }]), ['web'])
  assert.deepEqual(outputsNaming('built-in', [web, { name: 'db', lifetimeMs: hour }]), ['db'])
})
