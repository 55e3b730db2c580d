// T11: who may join by hardware identity. T12: registering many at once, some of them wrong.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { act, conditionsOf, journalOf, membershipOf, nodeOf, refusal, refusalIn, succeeded } from './ask-plane.ts'

const shared = sharedPlane()
const macOf = (number: number): string => `52:54:00:00:00:${number.toString(16).padStart(2, '0')}`
const hardwareOf = (number: number, serial: string | null = null) => ({ macs: [macOf(number)], bmc_serial: serial })

const register = async (id: string, number: number, serial?: string): Promise<void> =>
  void succeeded(
    await shared().api('POST', '/v1/nodes', {
      id,
      profile: 'hpc-diskless',
      macs: [macOf(number)],
      ...(serial === undefined ? {} : { bmc_serial: serial }),
    }),
  )

test('T11: unregistered hardware is refused NODE_NOT_ENROLLED, and leaves nothing behind but a line', async () => {
  const plane = shared()
  const node = rawNode(await plane.target())
  assert.deepEqual(refusal(await node.enrollByHardware(hardwareOf(0x10))), [403, 'NODE_NOT_ENROLLED'])
  await register('hpc-10', 0x10, 'SERIAL-10')
  // A registered serial has to be there: an address alone can be read off any network.
  for (const serial of [null, 'SERIAL-11']) {
    assert.deepEqual(refusal(await node.enrollByHardware(hardwareOf(0x10, serial))), [403, 'NODE_NOT_ENROLLED'])
  }
  await refusalIn(plane, 'NODE_NOT_ENROLLED')
  assert.equal(await membershipOf(plane, 'hpc-10'), 'registered')
  const { node_id: id, vcluster } = succeeded(await node.enrollByHardware(hardwareOf(0x10, 'SERIAL-10')))
  assert.deepEqual([id, vcluster], ['hpc-10', null])
})

test('T11: an active node that answers is not displaced: another key is refused ALREADY_ACTIVE and alerted', async () => {
  const plane = shared()
  await register('hpc-11', 0x11)
  const [node, other] = [rawNode(await plane.target()), rawNode(await plane.target())]
  const first = succeeded(await node.enrollByHardware(hardwareOf(0x11)))
  succeeded(await node.confirm())
  const channel = await node.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))

  assert.deepEqual(refusal(await other.enrollByHardware(hardwareOf(0x11))), [409, 'ALREADY_ACTIVE'])
  await refusalIn(plane, 'ALREADY_ACTIVE', { node: 'hpc-11' })
  assert.deepEqual(await conditionsOf(plane, 'hpc-11'), ['spoof_suspected'])
  const [alert] = await journalOf(plane, { node: 'hpc-11', type: 'node.second_holder' })
  assert.deepEqual([alert.body.condition, alert.body.source], ['spoof_suspected', '127.0.0.1'])
  // The same key is a retry, not a second caller.
  const again = succeeded(await node.enrollByHardware(hardwareOf(0x11)))
  assert.equal(again.certificate_chain, first.certificate_chain)
  assert.equal(channel.ended(), false)
  assert.equal((await nodeOf(plane, 'hpc-11')).epoch, 1)
  channel.destroy()
})

test('T11: a revoked node is refused NODE_REVOKED, whatever its key, until it is registered anew', async () => {
  const plane = shared()
  await register('hpc-12', 0x12)
  const node = rawNode(await plane.target())
  succeeded(await node.enrollByHardware(hardwareOf(0x12)))
  await act(plane, 'hpc-12', 'revoke', { reason: 'sold' })
  for (const caller of [node, rawNode(node.target)]) {
    assert.deepEqual(refusal(await caller.enrollByHardware(hardwareOf(0x12))), [403, 'NODE_REVOKED'])
  }
  await refusalIn(plane, 'NODE_REVOKED', { node: 'hpc-12' })
  await register('hpc-12', 0x12)
  // Its old key went with the tombstone.
  assert.deepEqual(refusal(await node.enrollByHardware(hardwareOf(0x12))), [403, 'KEY_BLOCKED'])
  assert.equal(succeeded(await rawNode(node.target).enrollByHardware(hardwareOf(0x12))).epoch, 2)
})

test('T11: a token does not get a node of this profile in, nor hardware one that asks for a token', async () => {
  const plane = shared()
  await register('hpc-13', 0x13)
  assert.deepEqual(refusal(await plane.api('POST', '/v1/tokens', { node: 'hpc-13' })), [403, 'JOIN_METHOD_NOT_ALLOWED'])
  succeeded(await plane.api('POST', '/v1/nodes', { id: 'gpu-14', profile: 'gpu-cloud', macs: [macOf(0x14)] }))
  const reply = await rawNode(await plane.target()).enrollByHardware(hardwareOf(0x14))
  assert.deepEqual(refusal(reply), [403, 'JOIN_METHOD_NOT_ALLOWED'])
  // P2: with a typo in a list of addresses, this is how an operator finds the machine.
  const entry = await refusalIn(plane, 'JOIN_METHOD_NOT_ALLOWED', { node: 'gpu-14' })
  assert.deepEqual(entry.body.reported_macs, [macOf(0x14)])
  const stranger = { macs: [macOf(0x99)], bmc_serial: `S-99 ${'x'.repeat(80)}` }
  assert.equal((await rawNode(await plane.target()).enrollByHardware(stranger)).status, 403)
  const unknown = await eventually('the refusal of unknown hardware', async () =>
    (await journalOf(plane, { type: 'refused' })).find(({ body }) => body.reported_macs?.includes(macOf(0x99))),
  )
  assert.match(unknown.body.reported_bmc_serial, /^S-99 /)
  assert.equal(await membershipOf(plane, 'gpu-14'), 'registered')
})

test('T12: a batch registers what it can, names what it cannot, and is repeated until it is done', async (t) => {
  const plane = shared()
  await register('hpc-20', 0x20)
  const file = path.join(tempFolder(t), 'nodes.csv')
  const batch = async (
    lines: readonly string[],
  ): Promise<{ code: number; results: [string, string, string | null][] }> => {
    fs.writeFileSync(file, ['id,profile,mac,bmc_serial', ...lines, ''].join('\n'))
    const { code, stdout, stderr } = await plane.muster('node', 'enroll', '--batch', file, '-o', 'json')
    assert.match(stderr, /lines: \d+ registered, \d+ already there, \d+ failed/)
    return { code, results: JSON.parse(stdout).results.map(({ id, result, code: why }: Json) => [id, result, why]) }
  }
  const good = [`hpc-21,hpc-diskless,${macOf(0x21)},`, `hpc-22,hpc-diskless,${macOf(0x22)};${macOf(0x23)},SERIAL-22`]
  const first = await batch([
    ...good,
    'hpc-24,hpc-diskless,not-a-mac,',
    `hpc-25,hpc-diskless,${macOf(0x20)},`,
    'hpc-26,no-such-profile,,SERIAL-26',
    `hpc-20,hpc-diskless,${macOf(0x20)},`,
    'HPC 27,hpc-diskless,,SERIAL-27',
  ])
  assert.equal(first.code, 6)
  assert.deepEqual(first.results, [
    ['hpc-21', 'registered', null],
    ['hpc-22', 'registered', null],
    ['hpc-24', 'failed', 'REQUEST_INVALID'],
    ['hpc-25', 'failed', 'HARDWARE_IDENTITY_CONFLICT'],
    ['hpc-26', 'failed', 'PROFILE_NOT_FOUND'],
    ['hpc-20', 'already there', null],
    ['HPC 27', 'failed', 'REQUEST_INVALID'],
  ])
  const corrected = [
    ...good,
    `hpc-24,hpc-diskless,${macOf(0x24)},`,
    `hpc-25,hpc-diskless,${macOf(0x25)},`,
    'hpc-26,hpc-diskless,,SERIAL-26',
  ]
  const second = await batch(corrected)
  assert.deepEqual(
    [second.code, second.results.map(([, result]) => result)],
    [0, ['already there', 'already there', 'registered', 'registered', 'registered']],
  )
  const third = await batch(corrected)
  assert.deepEqual([third.code, new Set(third.results.map(([, result]) => result))], [0, new Set(['already there'])])
  assert.equal((await journalOf(plane, { node: 'hpc-21', type: 'node.registered' })).length, 1)
  assert.equal(succeeded(await rawNode(await plane.target()).enrollByHardware(hardwareOf(0x23, 'SERIAL-22'))).epoch, 1)
})
