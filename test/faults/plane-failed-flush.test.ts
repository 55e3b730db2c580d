// L4, "besides" 2: after a failed fsync nobody knows what the disk holds, so the plane stops and is started anew.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { newSecret, targetByAddress } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { startPlane } from '../process/start-plane.ts'

test('L4: a plane whose fsync fails stops with exit code 70 and DISK_FAILED, and started again it has everything it acknowledged', async (t) => {
  const strace = withPeer(t, 'strace')
  if (strace === null) return
  const plane = await startPlane(t)
  const node = rawNode(await targetByAddress(plane))
  assert.equal((await node.enrollByToken(await newSecret(plane, 'gpu-001'))).status, 200)

  const inject = ['-f', '-p', String(plane.pid), '-o', '/dev/null', '-e', 'inject=fsync,fdatasync:error=EIO']
  const tracer = spawn(strace, inject, { stdio: ['ignore', 'ignore', 'pipe'] })
  cleanup(t, () => void tracer.kill('SIGKILL'))
  let said = ''
  tracer.stderr.on('data', (text) => (said += String(text)))
  await eventually('strace to be attached', async () => /attached/.test(said))

  const refused = await plane.api('POST', '/v1/tokens', { node: 'gpu-002' })
  assert.deepEqual([refused.status, refused.body.code], [503, 'DISK_TROUBLE'])
  const ended = await within('the plane to stop', 20_000, plane.ended)
  assert.equal(ended.code, 70, JSON.stringify(ended))
  assert.match(plane.stderr() + plane.stdout(), /DISK_FAILED/)

  const again = await plane.restart()
  assert.equal((await node.confirm()).status, 200)
  assert.equal((await again.api('POST', '/v1/tokens', { node: 'gpu-002' })).status, 201)
  assert.equal((await again.api('POST', '/v1/journal/verify', {})).body.intact, true)
})
