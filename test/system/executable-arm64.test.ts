// The executable for ARM, built here and run by qemu: from a token to an open channel.

import assert from 'node:assert/strict'
import * as path from 'node:path'
import { test } from 'node:test'
import { buildExecutable } from '../../scripts/build.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { runMuster } from '../process/run-muster.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const long = process.env['MUSTER_LONG'] === '1'

test('the executable for ARM is the same in two builds, and enrolls', { skip: !long }, async (t) => {
  const libraries = withPeer(t, 'arm64')
  if (libraries === null) return
  const folder = tempFolder(t)
  const [built, again] = [
    await buildExecutable('arm64', folder),
    await buildExecutable('arm64', path.join(folder, 'again')),
  ]
  assert.deepEqual([built.sha256, built.compressed.sha256], [again.sha256, again.compressed.sha256])

  const emulated = { command: 'qemu-aarch64', env: { QEMU_LD_PREFIX: libraries } }
  const version = await runMuster([built.file, 'version'], { ...emulated, withinMs: 120_000 })
  assert.match(version.stdout, /^muster \d/, version.stderr)

  const plane = await startPlane(t)
  startAgent(t, {
    env: emulated.env,
    wrapper: [emulated.command],
    command: built.file,
    join: await plane.token('--node', 'arm-1'),
  })
  await eventually(
    'the node to be active with a channel',
    async () => {
      const { body } = await plane.api('GET', '/v1/nodes/arm-1')
      return body.membership === 'active' && body.channel_open === true
    },
    { withinMs: 180_000 },
  )
})
