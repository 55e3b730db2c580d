// The commands for names and programs, against a real operator listener: what they print, and what they refuse.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { setUpCli } from './cli-setup.ts'

test('names are registered with a file or one by one, and belong to one node', async (t) => {
  const { muster, musterWith } = await setUpCli(t)
  const input = 'id,names,provisioning\ngpu-001,db-1.example 10.0.0.7,ready\ngpu-002,DB-1.example.,\n'
  const batch = await musterWith({ input }, 'node', 'enroll', '--batch', '-')
  assert.equal(batch.code, exitCodes.partly)
  assert.match(batch.out, /^LINE +NODE +RESULT +DETAIL\n2 +gpu-001 +registered/)
  assert.match(batch.out, /^3 +gpu-002 +failed +NAME_TAKEN db-1\.example belongs to gpu-001$/m)
  assert.match((await muster('node', 'show', 'gpu-001')).out, /^provisioning +ready/m)
  await muster('node', 'provisioning', 'gpu-001', 'deployed')
  await musterWith({ input }, 'node', 'enroll', '--batch', '-')
  assert.match((await muster('node', 'show', 'gpu-001')).out, /^provisioning +deployed/m, 'said since')
  const listed = await muster('node', 'names', 'list', 'gpu-001')
  assert.match(listed.out, /^db-1\.example +an operator/m)
  assert.match(listed.out, /^10\.0\.0\.7 +an operator/m)
  assert.equal((await muster('node', 'names', 'add', 'gpu-002', '*.example')).code, exitCodes.refused)
  assert.equal((await muster('node', 'names', 'remove', 'gpu-001', 'db-1.example')).code, exitCodes.ok)
  assert.match((await muster('node', 'names', 'add', 'gpu-002', 'db-1.example')).out, /^db-1\.example/m)
  assert.equal((await muster('node', 'names', 'remove', 'gpu-001', 'db-1.example')).code, exitCodes.refused)
  assert.equal((await muster('node', 'names', 'add', 'gpu-002')).code, exitCodes.usage)
  const entries = await muster('journal', 'list', '--node', 'gpu-001')
  assert.match(entries.out, /node\.names_added[\s\S]*node\.names_removed/)
})

test('a node that is registered anew has its names again, unless another took them; the next step is that of its profile', async (t) => {
  const { muster } = await setUpCli(t)
  const first = await muster('node', 'enroll', 'gpu-001')
  assert.doesNotMatch(first.out, /names/)
  assert.equal(first.err, 'next: ./muster token create --node gpu-001\n')
  await muster('node', 'names', 'add', 'gpu-001', 'db-1.example', '10.0.0.7')
  await muster('node', 'revoke', 'gpu-001', '--reason', 'sold')
  assert.match(
    (await muster('node', 'show', 'gpu-001')).out,
    /back in: .*node enroll gpu-001 --profile gpu-cloud, then /,
  )
  await muster('node', 'enroll', 'gpu-002')
  assert.equal((await muster('node', 'names', 'add', 'gpu-002', '10.0.0.7')).code, exitCodes.ok)
  const again = await muster('node', 'enroll', 'gpu-001')
  assert.match(again.out, /^names +db-1\.example \(from before it was revoked\)$/m)
  const hardware = await muster('node', 'enroll', 'hpc-1', '--profile', 'hpc-diskless', '--mac', '52:54:00:12:34:56')
  assert.match(hardware.err, /^next: its machine joins by its hardware, .* \.\/muster domain join-string\n$/)
})

test('outputs are set as JSON, shown as they can be set again, and what is wrong with one is named', async (t) => {
  const { muster } = await setUpCli(t)
  const set = await muster('profile', 'set', 'gpu-cloud', 'outputs=[{"name":"etcd","usage":"both","dns":["{name}"]}]')
  assert.equal(set.code, exitCodes.ok, set.err)
  const shown = /^outputs +(.+)$/m.exec(set.out)?.[1] ?? ''
  assert.equal((await muster('profile', 'set', 'gpu-cloud', `outputs=${shown}`)).code, exitCodes.ok)
  const wrong = await muster('profile', 'set', 'gpu-cloud', 'outputs=[{"name":"web","dns":["*.{name}"]}]')
  assert.match(wrong.err, /PROFILE_INVALID[\s\S]*dns takes/)
  const blue = await muster('vcluster', 'create', 'blue', 'outputs=[{"name":"probe"}]')
  assert.match(blue.out, /^outputs +probe: client \(p256 for \S+, key 0600\)$/m)
  const none = await muster('program', 'list')
  assert.deepEqual([none.out, /^no certificates for programs; .*muster program --help$/m.test(none.err)], ['', true])
})

test('there are no lists of programs before the first output, and no deltas of them', async (t) => {
  const { muster } = await setUpCli(t)
  const none = await muster('ca', 'crl', '--programs')
  assert.match(none.err, /There is no programs root yet/)
  assert.match((await muster('ca', 'crl', '--programs', '--delta')).err, /full lists of all authorities/)
})
