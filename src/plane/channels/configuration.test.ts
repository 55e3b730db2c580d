import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeRow, profileRow } from '../../../test/fakes/sample-rows.ts'
import { configurationOf, endpointSet, trustOf } from './configuration.ts'

const node = nodeRow('active').value
const profile = profileRow('gpu-cloud').value
const urls = { node: 'https://plane.example:8443', recovery: 'https://plane.example:8442' }
const revisionWith = (...changed: Partial<Parameters<typeof configurationOf>>): number => {
  const [n = node, p = profile, u = urls] = changed
  return configurationOf(n, p, u).revision
}

test('the revision changes with everything a node is told, and with nothing else', () => {
  const revision = revisionWith()
  assert.ok(Number.isSafeInteger(revision) && revision > 0)
  const longer = { ...profile, certificate: { ...profile.certificate, lifetimeMs: 1 } }
  const others = [
    revisionWith({ ...node, assignment: 'training' }),
    revisionWith(node, longer),
    revisionWith(node, profile, { ...urls, node: 'https://other.example:8443' }),
    revisionWith(node, profile, { ...urls, recovery: 'https://other.example:8442' }),
    revisionWith(node, profileRow('mesh-paas').value),
  ]
  assert.equal(new Set([revision, ...others]).size, 6)
  assert.equal(
    revisionWith({ ...node, drain: 'draining', epoch: 9 }, { ...profile, description: 'said otherwise' }),
    revision,
  )
})

test('endpoints and roots have revisions of their own', () => {
  assert.notEqual(endpointSet(urls).revision, endpointSet({ ...urls, node: 'https://other.example' }).revision)
  const [one, another] = [trustOf({ roots: () => ['a'] }), trustOf({ roots: () => ['b'] })]
  assert.notEqual(one.revision, another.revision)
  assert.deepEqual(trustOf({ roots: () => ['a'] }), one)
})
