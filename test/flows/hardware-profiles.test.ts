// What machines are sold as, by the commands people use.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { Change } from '#domain/core/change.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { createHardwareProfile, hardwareProfiles, tagNode } from '#plane/fleet/change-hardware.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import type { MachineView } from '#wire/fleet/hardware-api.ts'
import { operator } from './authority-setup.ts'
import { setUpCli } from './cli-setup.ts'
import { setUpOperatorServer } from './operator-setup.ts'
import type { FlowCore } from '#plane/core/core.ts'

test('a machine has a SKU once tag, firmware, evidence and slots are there, and loses it with one blocked slot', async (t) => {
  const plane = await setUpCli(t)
  const muster = async (...words: string[]) => {
    const said = await plane.muster(...words)
    assert.equal(said.code, exitCodes.ok, said.err)
    return said
  }
  const machine = async (...words: string[]): Promise<MachineView> =>
    JSON.parse((await muster('node', ...words, '-o', 'json')).out) as MachineView

  await muster('node', 'enroll', 'gpu-001')
  await muster('hardware-profile', 'create', 'h100', '--firmware', 'slice-vm', '--slots', '2', '--sku', 'h100-slice')
  await muster('hardware-profile', 'create', 'a100', '--firmware', 'baremetal', '--slots', '1', '--sku', 'a100-metal')
  assert.deepEqual((await machine('machine', 'gpu-001')).why, ['no tag of a hardware profile'])

  await muster('node', 'tag', 'gpu-001', '--add', 'h100')
  const second = await plane.muster('node', 'tag', 'gpu-001', '--add', 'a100')
  assert.equal(second.code, exitCodes.refused)
  assert.match(second.err, /one hardware profile at most/)
  assert.match(second.err, /muster node tag gpu-001 --add TAG --remove TAG/)

  const slots = ['--slot', 'gpu0=approved', '--slot', 'gpu1=approved']
  const reported = await machine('machine', 'gpu-001', '--firmware', 'slice-vm', ...slots)
  assert.deepEqual(reported.why, ['no evidence that it is ready'])
  const whole = await machine('machine', 'gpu-001', '--ready', '--evidence', 'burn_in=passed')
  assert.equal(whole.sku, 'h100-slice')

  const blocked = await machine('machine', 'gpu-001', '--slot', 'gpu1=cleanup_blocked:disk not wiped')
  assert.equal(blocked.sku, null)
  assert.match(blocked.why.join('; '), /gpu1: cleanup_blocked/)
  const swapped = await machine('tag', 'gpu-001', '--remove', 'h100', '--add', 'a100')
  assert.equal(swapped.hardware_profile, 'a100')
})

test('what an adapter says of a machine is shown and journaled, and keeps work away until it is deployed', async (t) => {
  const plane = await setUpCli(t)
  await plane.muster('node', 'enroll', 'gpu-001')
  const state = async (...words: string[]) => plane.muster('node', 'provisioning', 'gpu-001', ...words)
  const said = await state('deploying', '--detail', 'ubuntu/24.04')
  assert.equal(said.code, exitCodes.ok, said.err)
  assert.match(
    (await plane.muster('node', 'show', 'gpu-001')).out,
    /provisioning +deploying, ubuntu\/24\.04, since .*, said operator:/,
  )
  assert.match((await plane.muster('node', 'list')).out, /deploying/)
  const { body } = await plane.call('viewer', 'GET', '/v1/nodes/gpu-001')
  assert.equal(body.provisioning.state, 'deploying')
  assert.ok(body.scheduling.reasons.includes('provisioning: deploying'))
  assert.equal((await state('deploying', '--detail', 'ubuntu/24.04')).code, exitCodes.ok, 'it may be repeated')
  assert.equal((await state('asleep')).code, exitCodes.usage)
  const asViewer = { env: { MUSTER_KEY_FILE: plane.keyFile('viewer') } }
  const refused = await plane.musterWith(asViewer, 'node', 'provisioning', 'gpu-001', 'ready')
  assert.equal(refused.code, exitCodes.notAllowed)
  await state('deployed')
  await state('none')
  const query = { after: null, last: null, limit: 10, node: 'gpu-001', type: 'node.provisioning_reported' } as const
  assert.deepEqual(
    (await plane.store.journal.read(query)).map(({ entry }) => entry.body['state']),
    ['deploying', 'deployed', null],
  )
  assert.equal((await plane.call('viewer', 'GET', '/v1/nodes/gpu-001')).body.provisioning, null)
})

test('a hardware profile is refused for a tag that machines of another one carry, and taken once that is removed', async (t) => {
  const plane = await setUpCli(t)
  const create = (tag: string) =>
    plane.muster('hardware-profile', 'create', tag, '--firmware', 'x', '--slots', '0', '--sku', `${tag}-sku`)
  assert.equal((await create('h100')).code, exitCodes.ok)
  await plane.muster('node', 'enroll', 'gpu-001')
  await plane.muster('node', 'tag', 'gpu-001', '--add', 'h100', '--add', 'rack-7')
  const conflict = await create('rack-7')
  assert.equal(conflict.code, exitCodes.refused)
  assert.match(conflict.err, /gpu-001/)
  assert.equal((await plane.muster('hardware-profile', 'remove', 'h100')).code, exitCodes.ok)
  assert.equal((await create('rack-7')).code, exitCodes.ok)
  assert.equal((await plane.muster('hardware-profile', 'remove', 'h100')).code, exitCodes.notFound)
})

test('a tag put on while a hardware profile is made for it: the machine keeps the tag, and the profile is not made', async (t) => {
  const plane = await setUpOperatorServer(t)
  const profile = { description: '', firmware: 'x', tags: [], slots: 0 }
  const make = (tag: string, core: FlowCore = plane) =>
    createHardwareProfile(core, { ...profile, tag, sku: `${tag}-sku` }, operator)
  await registerNode(plane, { id: 'a', profile: null, macs: [], bmcSerial: null }, operator)
  await make('h100')
  const tag = (...add: string[]) => tagNode(plane, 'a', { add, remove: [] }, operator)
  await tag('h100')
  const { store } = plane
  const racing: FlowCore = {
    ...plane,
    store: {
      ...store,
      async commit(change: Change) {
        if (change.entries[0].type === 'hardware_profile.created') await tag('a100')
        return store.commit(change)
      },
    },
  }
  const made = await make('a100', racing)
  assert.ok(isRefusal(made) && made.code === 'PROFILE_TAG_CONFLICT')
  assert.deepEqual(
    (await hardwareProfiles(store)).map((one) => one.tag),
    ['h100'],
  )
  assert.deepEqual((await store.get('node', 'a'))?.value.machine.tags, ['a100', 'h100'])
})
