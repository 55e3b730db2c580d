// L4: on a full disk of the plane a stolen machine can be cut off. The reserve of the store is for that and nothing else.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { reserveBytes, reserveName } from '#plane/store/sqlite/disk-reserve.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import type { NodeTarget } from '../process/node-call.ts'
import { journalEntries, newSecret, targetByAddress } from '../process/plane-records.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mountTmpfs } from '../process/tmpfs.ts'

const revocationsInARow = process.env['MUSTER_LONG'] === undefined ? 50 : 100

const enroll = async (plane: Plane, target: NodeTarget, id: string): Promise<RawNode> => {
  const node = rawNode(target)
  assert.equal((await node.enrollByToken(await newSecret(plane, id))).status, 200)
  return node
}

const revoke = (plane: Plane, id: string) => plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'stolen' })

test('L4: on a full disk revoke, quarantine, withdraw and halt are answered 200, and are still in force after kill -9 on the full disk', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 16 << 20)
  const plane = await startPlane(t, { data: path.join(disk.folder, 'data') })
  const target = await targetByAddress(plane)
  const ids = Array.from({ length: revocationsInARow }, (_, number) => `row-${number}`)
  const row = await Promise.all(ids.map((id) => enroll(plane, target, id)))
  const [stolen, suspect, honest] = await Promise.all(
    ['stolen', 'suspect', 'honest'].map((id) => enroll(plane, target, id)),
  )
  assert.ok(stolen && suspect && honest)
  const channel = await stolen.openChannel()
  assert.ok('frames' in channel, JSON.stringify(channel))
  assert.equal((await honest.confirm()).status, 200)
  const secret = await newSecret(plane, 'late')
  const reserve = path.join(plane.data, reserveName)
  assert.equal(fs.statSync(reserve).blocks * 512 >= reserveBytes, true)

  // A log that was just folded into the database has no room to reuse.
  await plane.stop()
  const full = await plane.restart()
  disk.fill(0)
  const refused = await rawNode(target).enrollByToken(secret)
  assert.deepEqual([refused.status, refused.body.code], [503, 'DISK_TROUBLE'])
  assert.equal(fs.statSync(reserve).size, reserveBytes, 'an enrollment has taken from the reserve')

  const revoked = await revoke(full, 'stolen')
  assert.deepEqual([revoked.status, revoked.body.kind], [200, 'revoke'], JSON.stringify(revoked.body))
  assert.equal((await stolen.confirm()).status, 403)
  const quarantined = await full.api('POST', '/v1/nodes/suspect/quarantine', { reason: 'odd' })
  assert.equal(quarantined.status, 200, JSON.stringify(quarantined.body))
  assert.ok(fs.statSync(reserve).size < reserveBytes)

  for (const [at, id] of ids.entries()) {
    const { status, body } = await revoke(full, id)
    assert.equal(status, 200, `${id}: ${JSON.stringify(body)}`)
    if (at % 10 === 0) {
      const late = await rawNode(target).enrollByToken(secret)
      assert.deepEqual([late.status, late.body.code], [503, 'DISK_TROUBLE'], 'others must not use the reserve')
    }
  }
  assert.ok(fs.statSync(reserve).size > 0, 'the reserve is used up')
  const { body: readiness } = await full.api('GET', '/readyz')
  assert.match(readiness.warnings.join('\n'), /the reserve of the store is in use/)

  // Not a moment to write anything in order.
  await full.kill9()
  disk.fill(0)
  const again = await full.restart()
  for (const node of [stolen, suspect, ...row.slice(0, 3)]) assert.equal((await node.confirm()).status, 403)
  assert.equal((await honest.confirm()).status, 200)
  const issuing = (await again.api('GET', '/v1/ca')).body.authorities.find(
    ({ role, signing }: { role: string; signing: boolean }) => role === 'issuing' && signing,
  )
  const withdrawn = await again.api('POST', '/v1/ca/withdraw', { issuer: issuing.id, reason: 'its key is out' })
  assert.deepEqual([withdrawn.status, withdrawn.body.withdrawn], [200, [issuing.id]], JSON.stringify(withdrawn.body))
  const halted = await again.api('POST', '/v1/issuance/halt', { reason: 'until it is known how' })
  assert.equal(halted.status, 200, JSON.stringify(halted.body))
  const stillFull = await again.api('POST', '/v1/tokens', { node: 'more' })
  assert.deepEqual([stillFull.status, stillFull.body.code], [503, 'DISK_TROUBLE'])
  await again.kill9()
  const third = await again.restart()
  assert.equal((await third.api('GET', '/v1/issuance')).body.state, 'halted')
  assert.equal((await honest.confirm()).status, 403, 'its authority was withdrawn')

  disk.free()
  await eventually(
    'the reserve to be whole again',
    async () => {
      const { status, body } = await third.api('GET', '/readyz')
      return status === 200 && !body.warnings.some((warning: string) => /reserve/.test(warning))
    },
    { withinMs: 15_000, everyMs: 200 },
  )
  assert.equal(fs.statSync(reserve).size, reserveBytes)
  assert.equal((await third.api('POST', '/v1/issuance/resume', {})).status, 200)
  await enroll(third, target, 'new')
  assert.equal((await journalEntries(third, { type: 'host.revoked' })).length, revocationsInARow + 1)
  const { body: verified } = await third.api('POST', '/v1/journal/verify', {})
  assert.equal(verified.intact, true)
})
