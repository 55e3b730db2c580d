// Work that is wrong says why: a real service that cannot start and one that ends, a real check that fails and recovers,
// as an operator and a person on the machine see them.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { conditionsOf, nodeOf, succeeded } from '../compliance/ask-plane.ts'
import { joinMember, untilConnected } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { runMuster } from '../process/run-muster.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('a service that does not start, and a check that fails, are conditions within seconds and over when they are put right', async (t) => {
  const plane = await startPlane(t)
  const folder = tempFolder(t)
  const [flag, vcluster] = [path.join(folder, 'flag'), path.join(folder, 'training')]
  fs.writeFileSync(flag, '')
  fs.mkdirSync(path.join(vcluster, 'files/bin'), { recursive: true })
  fs.writeFileSync(
    path.join(vcluster, 'files/bin/feed'),
    '#!/bin/sh\necho "feeding $1"\necho "no such table" >&2\nexit 1\n',
  )
  fs.chmodSync(path.join(vcluster, 'files/bin/feed'), 0o755)
  const document = (worker: string): string =>
    [
      'services:',
      `  - {name: worker, command: [${worker}]}`,
      '  - {name: feeder, command: ["{overlay}/bin/feed", "{id}"], template: true}',
      'checks:',
      `  - {name: flag, command: [/bin/sh, -c, "test -e ${flag} || { echo the flag is gone; exit 1; }"], intervalMs: 1s, timeoutMs: 1s}`,
      '  - {name: kernel, command: ["muster:kernel-errors"]}',
      '',
    ].join('\n')
  const apply = async (worker: string): Promise<void> => {
    fs.writeFileSync(path.join(vcluster, 'vcluster.yaml'), document(worker))
    const { code, stderr } = await plane.muster('vcluster', 'apply', vcluster)
    assert.equal(code, 0, stderr)
  }
  await apply('/nope/bin')
  const agent = await joinMember(t, plane, { id: 'gpu-001', profile: 'gpu-cloud' })
  await untilConnected([agent])

  succeeded(await plane.api('POST', '/v1/nodes/gpu-001/assign', { to: 'training' }))
  const elapsedMs = fairStopwatch()
  await eventually('the condition', async () => {
    const { conditions } = await nodeOf(plane, 'gpu-001')
    return conditions.some(({ reason }: { reason: string }) => reason === 'services worker, feeder not running')
  })
  assert.ok(elapsedMs() < 10_000, 'within seconds')
  const node = await nodeOf(plane, 'gpu-001')
  assert.deepEqual(node.scheduling, { state: 'unavailable', reasons: ['service_failed'] })
  const [worker, feeder] = node.overlay.services
  assert.match(worker.error, /ENOENT/)
  assert.deepEqual(feeder.output.slice(-2), ['feeding gpu-001', 'no such table'])

  const shown = (await plane.muster('node', 'show', 'gpu-001')).stdout
  assert.match(shown, /service worker failed.*ENOENT/)
  assert.match(shown, /service feeder failed.*: ended with exit code 1\n(.*\n)* +\| no such table/)
  assert.match(shown, /kernel not made, .*needs muster-agent-helper/)
  assert.match(shown, /they share its user and can read its key/)
  assert.match((await plane.muster('node', 'explain', 'gpu-001')).stdout, /service_failed since .*ENOENT/)
  await eventually('the machine to say so, too', async () => {
    const { stdout } = await runMuster(['agent', 'explain', '--state', agent.state])
    return /What is wrong:\n +service_failed: worker: .*ENOENT\n +service_failed: feeder: .*no such table/.test(stdout)
  })

  fs.rmSync(flag)
  await eventually('the check to fail', async () => (await conditionsOf(plane, 'gpu-001')).includes('unhealthy'))
  const unhealthy = (await nodeOf(plane, 'gpu-001')).conditions.find(
    ({ name }: { name: string }) => name === 'unhealthy',
  )
  assert.deepEqual(unhealthy.evidence, { agent_check: 'flag', says: 'the flag is gone' })
  const byHand = await plane.muster('node', 'health', 'gpu-001', '--ok')
  assert.match(byHand.stderr, /NODE_STATE_CONFLICT[\s\S]*check flag failed/)
  fs.writeFileSync(flag, '')
  await eventually('the check to pass', async () => !(await conditionsOf(plane, 'gpu-001')).includes('unhealthy'))

  fs.writeFileSync(path.join(vcluster, 'files/bin/feed'), '#!/bin/sh\nexec sleep 600\n')
  await apply('sleep, "600"')
  await eventually('all of it to be right', async () => {
    const { scheduling, conditions } = await nodeOf(plane, 'gpu-001')
    return scheduling.state === 'schedulable' && conditions.length === 0
  })
})
