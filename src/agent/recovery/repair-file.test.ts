import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import type { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { hierarchy, nowMs } from '../../../test/vectors/pki-hierarchy.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { faultForNode, openRepairBundles, parseRepairBundle, putRepairBundle } from './repair-file.ts'

const bundle: RepairBundle = {
  kind: 'muster-repair-bundle-1',
  domain: 'example.test',
  node_id: 'gpu-001',
  recovery_token: `repair_${'a'.repeat(43)}`,
  recovery_urls: ['https://plane.example.test:8442'],
  recovery_roots: [toPem('CERTIFICATE', hierarchy('p256', nowMs).root.certificate.der)],
  statement_keys: [Buffer.from(generateKey('p256').spki).toString('base64')],
  endpoint_set: { id: 'runtime', revision: 1 },
  issued: {
    id: 'x',
    by: 'operator:admin',
    reason: 'a test',
    at: '2026-06-01T12:00:00.000Z',
    expires_at: '2026-06-01T13:00:00.000Z',
    journal: 'main:7',
  },
}

const read = (change: Partial<Record<keyof RepairBundle, unknown>>) =>
  parseRepairBundle(JSON.stringify({ ...bundle, ...change }))

test('a bundle is read whole', () => {
  assert.deepEqual(read({}), { kind: 'bundle', bundle })
})

test('what is wrong with one is said without repeating its secret', () => {
  const wrong: [Partial<Record<keyof RepairBundle, unknown>>, RegExp][] = [
    [{ kind: 'muster-repair-bundle-2' }, /not a repair bundle/],
    [{ recovery_token: `enroll_${'a'.repeat(43)}` }, /token is malformed/],
    [{ recovery_urls: ['http://plane.example.test'] }, /not https/],
    [{ recovery_roots: ['a root'] }, /root is malformed/],
    [{ statement_keys: ['AAAA'] }, /keys for statements/],
    [{ issued: { ...bundle.issued, expires_at: 'soon' } }, /until when/],
  ]
  for (const [change, shape] of wrong) {
    const outcome = read(change)
    assert.match(outcome.kind === 'unusable' ? outcome.why : '', shape)
    assert.doesNotMatch(JSON.stringify(outcome), /aaaaaaaa/)
  }
  assert.equal(parseRepairBundle('{').kind, 'unusable')
})

test('a bundle is for one node of one domain; a machine without an identity takes any', () => {
  assert.equal(faultForNode(bundle, { domain: 'example.test', nodeId: 'gpu-001' }), null)
  assert.match(faultForNode(bundle, { domain: 'example.test', nodeId: 'gpu-002' }) ?? '', /is for node gpu-001/)
  assert.match(faultForNode(bundle, { domain: 'other.test', nodeId: 'gpu-001' }) ?? '', /of domain example.test/)
  assert.equal(faultForNode(bundle, null), null)
})

test('a bundle that is spent is not found again, though the disk still has it, and the next one is', (t) => {
  const folder = tempFolder(t)
  const bundles = openRepairBundles(folder)
  assert.equal(bundles.find(null), null)
  putRepairBundle(folder, JSON.stringify(bundle))
  assert.deepEqual(bundles.find(null), bundle)
  const another = { domain: 'example.test', nodeId: 'gpu-002' } as Identity
  assert.equal(bundles.find(another), null, 'whoever put it there by hand')
  bundles.spent(bundle)
  assert.equal(bundles.find(null), null)
  assert.deepEqual(openRepairBundles(folder).find(null), bundle, 'another process may need it')
  const next = { ...bundle, issued: { ...bundle.issued, id: 'y' } }
  putRepairBundle(folder, JSON.stringify(next))
  assert.deepEqual(bundles.find(null), next)
  assert.equal(bundles.drop(), null)
  assert.equal(bundles.find(null), null)
})

test('what root brings belongs to the agent, whose folder it is', (t) => {
  const folder = tempFolder(t)
  const nobody = 65_534
  if (process.geteuid?.() === 0) fs.chownSync(folder, nobody, nobody)
  putRepairBundle(folder, JSON.stringify(bundle))
  const [{ uid, gid }, brought] = [fs.statSync(folder), fs.statSync(path.join(folder, 'repair.json'))]
  assert.deepEqual([brought.uid, brought.gid, brought.mode & 0o777], [uid, gid, 0o600])
})
