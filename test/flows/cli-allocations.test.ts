// Work on nodes from the command line: placed, refused with a reason, drained away, and watched.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { runCli } from '#cli/kit/run-cli.ts'
import { slotOf } from '#domain/core/certificate.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { testCli } from '../fakes/test-cli.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { newNode, someCertificate } from '../store/harness.ts'
import { startMs } from './authority-setup.ts'
import { setUpCli, type CliSetup } from './cli-setup.ts'

const setUp = async (t: TestContext): Promise<CliSetup> => {
  const world = await setUpCli(t)
  await world.muster('vcluster', 'create', 'training')
  const slots = { current: slotOf(someCertificate('c1')), pending: null, retired: null }
  const membership = { kind: 'active', sinceMs: startMs, slots } as const
  await world.store.commit(newNode('gpu-001', { membership, epoch: 1, assignment: 'training' }))
  return world
}

const place = ['allocation', 'create', 'job-1', '--node', 'gpu-001', '--vcluster', 'training', '--owner', 'slurm']

test('an unhealthy node is left out and says why; a healthy one gets work, and drains when it is asked to', async (t) => {
  const { muster } = await setUp(t)
  assert.match((await muster('node', 'health', 'gpu-001', '--unhealthy')).err, /USAGE: An unhealthy node has a reason/)
  const sick = await muster('node', 'health', 'gpu-001', '--unhealthy', '--reason', 'xid 79')
  assert.match(sick.out, /scheduling +unavailable, unhealthy/)
  const refused = await muster(...place)
  assert.equal(refused.code, 1)
  assert.match(refused.err, /^error NODE_NOT_SCHEDULABLE: .*\ndetail: gpu-001: unhealthy\nnext: .*node show gpu-001\n$/)
  assert.equal((await muster('node', 'list', '--schedulable')).out, '')
  const out =
    /^NAME +STATE +VCLUSTER +SCHEDULING +ALLOCATIONS +REASONS\ngpu-001 +active +training +unavailable +0 +unhealthy\n$/
  assert.match((await muster('node', 'list', '--schedulable', 'no')).out, out)

  assert.match((await muster('node', 'health', 'gpu-001', '--ok')).out, /scheduling +schedulable/)
  assert.match((await muster(...place)).out, /^allocation +job-1\nnode +gpu-001\n(.*\n)*state +running\n/)
  assert.match((await muster('node', 'list', '--schedulable')).out, /schedulable +1 +-$/m)
  assert.match((await muster('node', 'drain', 'gpu-001')).out, /scheduling +draining/)
  const listed = await muster('allocation', 'list', '--node', 'gpu-001')
  assert.match(listed.out, /^ALLOCATION.*\njob-1 +gpu-001 +training +slurm +releasing .* gpu-001 drains\n$/)
  assert.match((await muster('node', 'drain', 'gpu-001', '--done')).err, /1 allocation is still on gpu-001/)
  assert.match((await muster('allocation', 'release', 'job-1', '--reason', 'moved')).out, /why +moved/)
  assert.match((await muster('node', 'show', 'gpu-001')).out, /scheduling +drained/)
  assert.match((await muster('allocation', 'show', 'nothing')).err, /ALLOCATION_NOT_FOUND/)
})

test('a watch lists every node and goes on with what changes', async (t) => {
  const world = await setUp(t)
  const { cli, stdout } = testCli({
    nowMs: startMs,
    env: { MUSTER_DATA: world.folder, MUSTER_KEY_FILE: world.keyFile('viewer') },
    input: '',
  })
  const openHttp: typeof openHttpClient = (target) => {
    const client = openHttpClient(target)
    // A watch ends with its process.
    cleanup(t, () => client.close())
    return client
  }
  void runCli(['scheduling', 'watch', '--vcluster', 'training', '-o', 'json'], { ...cli, openHttp })
  const lines = () =>
    stdout()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line).state)
  await eventually('the list', () => lines().length === 1)
  await world.muster('node', 'drain', 'gpu-001')
  await eventually('the change', () => lines().length > 1)
  assert.deepEqual(lines(), ['schedulable', 'drained'])
})
