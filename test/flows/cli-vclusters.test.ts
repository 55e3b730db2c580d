// The vcluster commands and those that assign nodes, against a real operator listener: what they print, and what they refuse.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { setUpCli } from './cli-setup.ts'

const overlay = {
  files: [{ path: 'etc/worker.conf', mode: 0o644, content: 'batch = 8\n' }],
  services: [{ name: 'worker', command: ['/usr/bin/worker', '{overlay}/etc/worker.conf'] }],
}

test('a vCluster from nothing to its deletion, with the nodes in it', async (t) => {
  const { muster, musterWith } = await setUpCli(t)
  const none = await muster('vcluster', 'list')
  assert.equal(none.out, '')
  assert.match(none.err, /muster vcluster create training/)
  const made = await musterWith({ input: JSON.stringify(overlay) }, 'vcluster', 'create', 'training', '--overlay', '-')
  assert.equal(made.code, exitCodes.ok, made.err)
  assert.match(made.out, /^services +worker: \/usr\/bin\/worker \{overlay\}\/etc\/worker\.conf$/m)
  const set = await muster('vcluster', 'set', 'training', 'policy.enforcementMode=enforce', 'description=the big one')
  assert.match(set.out, /^policy\.enforcementMode +enforce$/m)
  assert.match(set.out, /^revision +2$/m)
  assert.match((await muster('vcluster', 'list')).out, /training +0 +2 +enforce +mesh +1 file, worker +the big one/)
  assert.equal((await muster('vcluster', 'create', 'training')).code, exitCodes.refused)

  for (const id of ['gpu-001', 'gpu-002']) await muster('node', 'enroll', id)
  const assigned = await muster('node', 'assign', 'gpu-001', 'gpu-002', '--to', 'training')
  assert.match(assigned.out, /\ngpu-001 +in training +unavailable\ngpu-002 +in training/)
  assert.match((await muster('node', 'list', '--vcluster', 'training')).out, /registered +gpu-cloud +training/)
  assert.match((await muster('node', 'show', 'gpu-001')).out, /^vcluster +training, revision 2$/m)

  const inUse = await muster('vcluster', 'delete', 'training')
  assert.equal(inUse.code, exitCodes.refused)
  assert.match(inUse.err, /VCLUSTER_IN_USE[\s\S]*node list --vcluster training\): \S*muster node move ID --to OTHER/)
  const deleted = await muster('vcluster', 'delete', 'training', '--force')
  assert.match(deleted.out, /^unassigned +gpu-001\n +gpu-002$/m)
  assert.equal((await muster('vcluster', 'show', 'training')).code, exitCodes.notFound)
})

test('P4: nodes in no vCluster can be listed, no vCluster is called none, and an unknown one is named as such', async (t) => {
  const { muster } = await setUpCli(t)
  await muster('vcluster', 'create', 'training')
  for (const id of ['gpu-001', 'gpu-002']) await muster('node', 'enroll', id)
  await muster('node', 'assign', 'gpu-001', '--to', 'training')
  const free = await muster('node', 'list', '--vcluster', 'none')
  assert.match(free.out, /^gpu-002 /m)
  assert.doesNotMatch(free.out, /gpu-001/)
  const unknown = await muster('node', 'list', '--vcluster', 'trainign')
  assert.equal(unknown.code, exitCodes.notFound)
  assert.match(unknown.err, /VCLUSTER_NOT_FOUND/)
  assert.match((await muster('vcluster', 'create', 'none')).err, /VCLUSTER_INVALID[\s\S]*in no vCluster/)
})

test('of several nodes each has its own result, and one that failed is named with what to do', async (t) => {
  const { muster } = await setUpCli(t)
  for (const name of ['training', 'inference']) await muster('vcluster', 'create', name)
  for (const id of ['gpu-001', 'gpu-002']) await muster('node', 'enroll', id)
  await muster('node', 'assign', 'gpu-001', '--to', 'training')
  const partly = await muster('node', 'assign', 'gpu-001', 'gpu-002', 'gpu-003', '--to', 'inference')
  assert.equal(partly.code, exitCodes.partly)
  assert.match(partly.out, /gpu-001 +failed +NODE_STATE_CONFLICT .*muster node move gpu-001 --to inference/)
  assert.match(partly.out, /gpu-002 +in inference/)
  assert.match(partly.out, /gpu-003 +failed +NODE_NOT_FOUND/)
  const moved = await muster('node', 'move', 'gpu-001', '--to', 'inference')
  assert.match(moved.out, /gpu-001 +in inference/)
  assert.match((await muster('node', 'unassign', 'gpu-001')).out, /gpu-001 +in no vcluster/)
})

test('what is neither YAML nor JSON, or changes nothing, is not sent', async (t) => {
  const { muster, musterWith } = await setUpCli(t)
  const broken = await musterWith({ input: '{' }, 'vcluster', 'set', 'training', '--overlay', '-')
  assert.equal(broken.code, exitCodes.usage)
  assert.match(broken.err, /USAGE: -:1: .*must end with/)
  assert.equal((await muster('vcluster', 'set', 'training')).code, exitCodes.usage)
  assert.match((await muster('vcluster', 'set', 'training', 'revision=9')).err, /no setting revision/)
})

test('what domain show prints of maintenance mode, domain set takes', async (t) => {
  const { muster } = await setUpCli(t)
  const line = 'maintenance.timeSync={"name":"chronyd","command":["/usr/sbin/chronyd","-d"]}'
  const set = await muster('domain', 'set', line, 'maintenance.policy.execWhitelist=dmesg,lspci')
  assert.equal(set.code, exitCodes.ok, set.err)
  const { out } = await muster('domain', 'show')
  const pairs = out
    .trim()
    .split('\n')
    .map((one) => one.replace(/^(\S+) */, '$1='))
  assert.ok(pairs.includes(line), out)
  assert.equal((await muster('domain', 'set', ...pairs.filter((one) => !one.startsWith('name')))).code, exitCodes.ok)
  assert.equal((await muster('domain', 'set', 'maintenance.timeSync=none')).code, exitCodes.ok)
  assert.match((await muster('domain', 'set', 'overlayPrefix=10.0.0.0/8')).err, /IPv6 prefix/)
})

const document = `description: the big one
policy: {enforcementMode: enforce}
files:
  - {path: etc/worker.conf, template: true}
services:
  - name: worker
    command: [/usr/bin/worker, "{overlay}/etc/worker.conf"]
    user: worker
    limits: {memoryBytes: 1GiB}
checks:
  - name: disks
    command: ["muster:read-only"]
    intervalMs: 30s
`

const vclusterFolder = (t: TestContext, text: string): string => {
  const folder = path.join(tempFolder(t), 'training')
  fs.mkdirSync(path.join(folder, 'files/etc'), { recursive: true })
  fs.writeFileSync(path.join(folder, 'files/etc/worker.conf'), 'node = {id}\n')
  fs.writeFileSync(path.join(folder, 'vcluster.yaml'), text)
  return folder
}

test('a folder is applied, shown in the same words, and applied again changes nothing', async (t) => {
  const { muster } = await setUpCli(t)
  const folder = vclusterFolder(t, document)
  const made = await muster('vcluster', 'apply', folder)
  assert.equal(made.code, exitCodes.ok, made.err)
  assert.match(made.out, /^name +training$/m)
  assert.match(made.out, /^files +0644 etc\/worker\.conf, 12 characters, a template$/m)
  assert.match(made.out, /^services +worker: .* \(as worker, memory 1073741824 bytes\)$/m)
  assert.match(made.out, /^checks +disks: muster:read-only, every 30s within 10s$/m)
  assert.match((await muster('vcluster', 'apply', folder)).out, /^revision +1$/m)
  const shown = JSON.parse((await muster('vcluster', 'show', 'training', '-o', 'json')).out) as { overlay: object }
  const file = path.join(folder, 'again.json')
  fs.writeFileSync(file, JSON.stringify(shown.overlay))
  const again = await muster('vcluster', 'set', 'training', '--overlay', file)
  assert.match(again.out, /^revision +1$/m, again.err)
  fs.writeFileSync(path.join(folder, 'nameless.yaml'), 'description: x\n')
  assert.match((await muster('vcluster', 'apply', path.join(folder, 'nameless.yaml'))).err, /names no vCluster/)
})

test('what only the plane finds is said with the line of the document, too', async (t) => {
  const { muster } = await setUpCli(t)
  const late = await muster('vcluster', 'apply', vclusterFolder(t, `${document}    timeoutMs: 31s\n`))
  assert.equal(late.code, exitCodes.refused)
  assert.match(late.err, /VCLUSTER_INVALID[\s\S]*vcluster\.yaml:14: checks\[0\]\.timeoutMs: .*over before it is due/)
  const peering = await muster('vcluster', 'apply', vclusterFolder(t, `peering: star\n${document}`))
  assert.match(peering.err, /vcluster\.yaml:1: peering: .*mesh, isolated/)
})

test('settings that nothing reads are marked where they are set and shown, for people and for programs', async (t) => {
  const { muster } = await setUpCli(t)
  assert.equal(
    (await muster('vcluster', 'create', 'training')).err,
    '',
    'a change that sets none of them needs no remark',
  )
  const set = await muster('vcluster', 'set', 'training', 'policy.execWhitelist=nvidia-smi')
  assert.match(set.err, /^no effect yet: policy\.execWhitelist \(/m)
  const shown = await muster('vcluster', 'show', 'training')
  assert.match(shown.err, /^no effect yet: policy\.execWhitelist, policy\.shellWhitelist, policy\.regulated /m)
  assert.match((await muster('domain', 'show')).err, /no effect yet: maintenance\.policy\.execWhitelist/)
  const body = JSON.parse((await muster('profile', 'show', 'high-assurance', '-o', 'json')).out) as object
  assert.deepEqual((body as { no_effect_yet: unknown }).no_effect_yet, ['join.allOf', 'keyStorage'])
  assert.match(
    (await muster('profile', 'list')).out,
    /high-assurance +token\+tpm \(no effect yet\) +24h +tpm \(no effect yet\)/,
  )
  assert.doesNotMatch((await muster('profile', 'show', 'gpu-cloud')).err, /no effect/)
  const tpm = await muster('profile', 'set', 'gpu-cloud', 'keyStorage=tpm')
  assert.match(tpm.err, /PROFILE_INVALID[\s\S]*no effect yet/)
  const token = await muster('token', 'create', '--node', 'gpu-001', '--profile', 'high-assurance')
  assert.match(token.err, /JOIN_METHOD_NOT_ALLOWED[\s\S]*no agent can join by tpm yet/)
  await muster('node', 'enroll', 'gpu-002', '--profile', 'high-assurance')
  assert.match((await muster('node', 'show', 'gpu-002')).out, /no agent can join by tpm yet/)
})
