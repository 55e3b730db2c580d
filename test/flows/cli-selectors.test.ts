// Verbs on nodes that a selector chooses: shown first, done with --yes or as planned, refused where the set has changed.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { Node } from '#domain/core/node.ts'
import { mostSelected } from '#domain/plans/plan.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import type { PlanApplied, PlanView } from '#wire/plans/plan-api.ts'
import { root } from '../../scripts/repository.ts'
import { newNode } from '../store/harness.ts'
import { operator, startMs } from './authority-setup.ts'
import { setUpCli } from './cli-setup.ts'

const setUp = async (t: TestContext) => {
  const world = await setUpCli(t)
  const ok = async (...words: string[]): Promise<string> => {
    const said = await world.muster(...words)
    assert.equal(said.code, exitCodes.ok, `${words.join(' ')}: ${said.err}`)
    return said.out
  }
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003', 'hpc-1']) await ok('node', 'enroll', id)
  await ok('vcluster', 'create', 'blue')
  await ok('node', 'assign', 'gpu-001', 'gpu-002', '--to', 'blue')
  await ok('node', 'tag', 'gpu-002', '--add', 'Rack=7')
  const names = async (...filter: string[]): Promise<string[]> =>
    (await ok('node', 'list', '-o', 'name', ...filter)).split('\n').filter((line) => line !== '')
  return { ...world, ok, names }
}

const subjects = (text: string): string[] => (JSON.parse(text) as PlanView).effects.map(({ subject }) => subject)

test('nodes are listed by globs and filters that all have to hold, and a revoked one only if it is asked for', async (t) => {
  const { ok, muster, names } = await setUp(t)
  assert.deepEqual(await names('gpu-*'), ['gpu-001', 'gpu-002', 'gpu-003'])
  assert.deepEqual(await names('gpu-00?', '--vcluster', 'none'), ['gpu-003'])
  assert.deepEqual(await names('hpc-1', 'gpu-003'), ['gpu-003', 'hpc-1'])
  assert.deepEqual(await names('--tag', 'rack=7', '--state', 'registered'), ['gpu-002'])
  assert.deepEqual(await names('--tag', 'rack', '--connected', 'yes'), [])
  assert.match((await muster('node', 'tag', 'gpu-002', '--add', 'a b')).err, /a b is not a tag/)
  for (const wrong of [['--tag', 'a b'], ['Bad*Name']]) {
    const said = await muster('node', 'list', ...wrong)
    assert.deepEqual([said.code, /is not a (tag|glob)/.test(said.err)], [exitCodes.usage, true], said.err)
  }
  for (const ids of [['nope-1'], ['gpu-001', 'nope-1'], ['nope-1', 'gpu-*']]) {
    const said = await muster('node', 'list', ...ids)
    assert.deepEqual([said.code, said.out], [exitCodes.notFound, ''])
    assert.match(said.err, /NODE_NOT_FOUND[^]*nope-1/)
  }
  assert.deepEqual(await names('nope-*'), [])
  assert.deepEqual(await names('--sort', 'name:desc'), ['hpc-1', 'gpu-003', 'gpu-002', 'gpu-001'])
  assert.equal((await muster('node', 'list', '--condition', 'no_such')).code, exitCodes.usage)
  await ok('node', 'revoke', 'gpu-003', '--reason', 'sold')
  const listed = await muster('node', 'list', 'gpu-*')
  assert.doesNotMatch(listed.out, /gpu-003/)
  assert.equal(listed.err, '1 revoked not shown; with them: ./muster node list --all\n')
  assert.deepEqual(await names('--all', 'gpu-*'), ['gpu-001', 'gpu-002', 'gpu-003'])
  assert.deepEqual(await names('--state', 'revoked'), ['gpu-003'])
  assert.match(await ok('vcluster', 'list'), /^VCLUSTER +NODES .*\nblue +2 /)
})

test('a verb by selector shows a plan and does nothing; with --yes it does it', async (t) => {
  const { ok, muster, call } = await setUp(t)
  const order = ['node', 'quarantine', '--vcluster', 'blue', '--reason', 'odd']
  const shown = await muster(...order, '-o', 'json')
  assert.equal(shown.code, exitCodes.onlyPlanned)
  assert.match(shown.err, /^nothing was done; to do this, until \S+: .*muster plan apply \w{26}\n$/)
  assert.deepEqual(subjects(shown.out), ['node gpu-001', 'node gpu-002'])
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-001')).body.state, 'registered')
  assert.equal((await muster(...order, '--plan')).code, exitCodes.ok, 'a plan was asked for')

  const done = await ok(...order, '--yes')
  assert.match(done, /^SUBJECT +OUTCOME +PROOF\nnode gpu-001 +done +effective .*receipt \w{26}\)\nnode gpu-002 +done/)
  assert.match(await ok('node', 'list', '--state', 'quarantined', '-o', 'name'), /^gpu-001\ngpu-002\n$/)
})

/** A machine that came back, and was not let in. */
const waitsForApproval: Partial<Node> = {
  conditions: [{ name: 'needs_approval', sinceMs: startMs, reason: 'it came back', evidence: {} }],
  recovery: {
    credential: { kind: 'key', spki: 'ab'.repeat(32), publicKey: 'AA==', registeredAtMs: startMs },
    recoveredAtMs: [],
    denied: null,
    episode: null,
  },
}

test('every verb that acts on nodes takes a selector', async (t) => {
  const { ok, muster, call, store } = await setUp(t)
  const node = async (id: string) => (await call('viewer', 'GET', `/v1/nodes/${id}`)).body
  await ok('node', 'drain', 'gpu-*', '--yes')
  assert.equal((await node('gpu-003')).scheduling.state, 'drained')
  await ok('node', 'undrain', '--tag', 'rack', '--yes')
  assert.deepEqual(
    [(await node('gpu-002')).scheduling.state, (await node('gpu-001')).scheduling.state],
    ['unavailable', 'drained'],
  )
  await ok('node', 'health', '--vcluster', 'blue', '--unhealthy', '--reason', 'no cooling', '--yes')
  assert.deepEqual(
    (await node('gpu-001')).conditions.map(({ name }: { name: string }) => name),
    ['unhealthy'],
  )
  await ok('node', 'health', '--condition', 'unhealthy', '--ok', '--yes')
  assert.deepEqual((await node('gpu-001')).conditions, [])
  await ok('node', 'tag', 'gpu-*', '--add', 'row-b', '--yes')
  assert.deepEqual((await node('gpu-002')).tags, ['rack:7', 'row-b'])
  await ok('node', 'provisioning', 'gpu-*', 'deploying', '--yes')
  assert.equal((await node('gpu-001')).provisioning.state, 'deploying')
  await ok('node', 'machine', '--tag', 'rack=7', '--firmware', 'slice-vm', '--yes')
  assert.equal((await call('viewer', 'GET', '/v1/nodes/gpu-002/machine')).body.firmware, 'slice-vm')
  assert.match((await muster('node', 'machine', '--tag', 'rack=7')).err, /USAGE: Which machine\?/)
  await ok('vcluster', 'create', 'green')
  await ok('node', 'assign', '--vcluster', 'none', '--to', 'green', '--yes')
  await ok('node', 'move', '--vcluster', 'blue', '--to', 'green', '--yes')
  assert.match(await ok('vcluster', 'list', '--sort', 'nodes'), /\nblue +0 .*\ngreen +4 /)
  await ok('node', 'unassign', 'hpc-?', '--yes')
  assert.equal((await node('hpc-1')).vcluster, null)
  for (const id of ['back-1', 'back-2']) await store.commit(newNode(id, waitsForApproval))
  await ok('node', 'deny', 'back-*', '--yes')
  assert.match((await muster('node', 'deny', 'back-*')).out, /back-2 .*has said no to back-2 already/)
  await ok('node', 'approve', '--profile', 'gpu-cloud', 'back-*', '--yes')
  const [first, second] = [await store.get('node', 'back-1'), await store.get('node', 'back-2')]
  for (const row of [first, second])
    assert.deepEqual([row?.value.recovery?.denied, row?.value.approvals.length], [null, 1])
  await ok('node', 'scrape-address', 'hpc-1', '10.0.0.7:9100')
  await ok('node', 'scrape-address', 'hpc-*', '--remove', '--yes')
  assert.equal((await node('hpc-1')).scrape_address, null)
  assert.match(
    (await muster('node', 'settle', 'hpc-*', '--reason', 'wiped')).out,
    /hpc-1 .*refused with NODE_STATE_CONFLICT/,
  )
  await ok('node', 'decommission', 'hpc-*', '--force', '--yes')
  await ok('node', 'revoke', '--profile', 'gpu-cloud', '--reason', 'sold', '--yes')
  assert.deepEqual([(await node('hpc-1')).state, (await node('gpu-001')).state], ['revoked', 'revoked'])
})

test('the commands of docs/DAY-2.md for many nodes do what they say', async (t) => {
  const { folder, ok, muster, musterWith, names } = await setUp(t)
  const page = fs.readFileSync(path.join(root, 'docs', 'DAY-2.md'), 'utf8')
  const block = /### Many nodes at once\n[^]*?\n\n((?: {4}.*\n)+)/.exec(page)?.[1] ?? ''
  const lines = block.split('\n').flatMap((line) => {
    const command = line.replace(/ +#.*$/, '').trim()
    return command === '' ? [] : [command]
  })
  assert.equal(lines.length, 7)
  const stolen = path.join(folder, 'stolen.txt')
  fs.writeFileSync(stolen, '# a name a line\ngpu-003\n')
  await ok('vcluster', 'create', 'training')
  await ok('node', 'move', 'gpu-002', '--to', 'training')
  await ok('node', 'tag', 'gpu-002', '--add', 'rack=7')
  const wordsOf = (command: string): string[] =>
    [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
      ([, single, double, bare]) => single ?? double ?? bare ?? '',
    )
  const codes: number[] = []
  for (const line of lines) {
    let input = ''
    for (const [at, part] of line.split(' | ').entries()) {
      const [program, ...words] = wordsOf(part.replace('stolen.txt', stolen))
      assert.equal(program, 'muster')
      const said = at === 0 ? await muster(...words) : await musterWith({ input }, ...words)
      input = said.out
      codes.push(said.code)
    }
    // The plan of the fourth line is carried out, so that the fifth finds what it releases.
    if (line.includes(' quarantine ')) await ok(...wordsOf(line).slice(1), '--yes')
    if (line.includes(' revoke ')) await ok('node', 'health', 'gpu-001', '--unhealthy', '--reason', 'no cooling')
  }
  const { ok: done, onlyPlanned } = exitCodes
  assert.deepEqual(codes, [done, onlyPlanned, done, onlyPlanned, done, done, done, done])
  assert.deepEqual(await names('--state', 'revoked'), ['gpu-003'])
  assert.deepEqual(await names('--condition', 'unhealthy'), ['gpu-001'])
})

test('a plan by selector is stale once another node matches, or one does not any more', async (t) => {
  const { muster, ok, call } = await setUp(t)
  const planned = async (...words: string[]): Promise<string> =>
    (JSON.parse((await muster(...words, '-o', 'json')).out) as PlanView).id
  const revoke = await planned('node', 'revoke', 'gpu-*', '--reason', 'sold')
  const drain = await planned('node', 'drain', '--vcluster', 'blue')
  await ok('node', 'enroll', 'gpu-009')
  await ok('node', 'unassign', 'gpu-002')
  const grown = await muster('plan', 'apply', revoke)
  assert.equal(grown.code, exitCodes.refused)
  assert.match(grown.err, /PLAN_STALE[\s\S]*node gpu-009 is new/)
  const shrunk = await muster('node', 'drain', '--apply', drain)
  assert.match(shrunk.err, /PLAN_STALE[\s\S]*node gpu-002 is not concerned any more/)
  for (const id of ['gpu-001', 'gpu-009']) {
    assert.equal((await call('viewer', 'GET', `/v1/nodes/${id}`)).body.state, 'registered')
  }
})

test('a selector that matches nothing, a name that is not there and a name that cannot be one are told apart', async (t) => {
  const { muster } = await setUp(t)
  const none = await muster('node', 'drain', 'xpu-*', '--yes')
  assert.deepEqual([none.code, /NODES_NOT_FOUND: No node matches/.test(none.err)], [exitCodes.notFound, true])
  assert.match((await muster('node', 'drain', 'gpu-1', 'gpu-*')).err, /NODE_NOT_FOUND[\s\S]*gpu-1/)
  assert.match((await muster('node', 'drain', '--vcluster', 'bleu')).err, /VCLUSTER_NOT_FOUND/)
  assert.match((await muster('node', 'drain', 'GPU*')).err, /USAGE: GPU\* is not a glob/)
  assert.match((await muster('node', 'drain')).err, /USAGE: Which nodes\?/)
  assert.match(
    (await muster('node', 'drain', 'gpu-*', '--apply', '01JCQ7Z6W3M8X9Y0Z1A2B3C4D5')).err,
    /no more than its id/,
  )
  const viewer = await muster('--key-file', '/nowhere', 'node', 'drain', 'gpu-*', '--yes')
  assert.notEqual(viewer.code, exitCodes.ok)
})

test('names come from a file or from standard input, and filters hold of them too', async (t) => {
  const { folder, ok, muster, musterWith } = await setUp(t)
  const file = path.join(folder, 'names.txt')
  fs.writeFileSync(file, '# rack 7\ngpu-001 gpu-002\nhpc-1 # login\n')
  const fromFile = await muster('node', 'drain', '--from', file, '--vcluster', 'blue', '-o', 'json')
  assert.deepEqual(subjects(fromFile.out), ['node gpu-001', 'node gpu-002'])
  const both = await muster('node', 'drain', 'hpc-*', '--from', file, '-o', 'json')
  assert.deepEqual(subjects(both.out), ['node hpc-1'])
  const piped = await musterWith({ input: await ok('node', 'list', '-o', 'name') }, 'node', 'drain', '-', '--yes')
  assert.deepEqual([piped.code, piped.out.match(/ done/g)?.length], [exitCodes.ok, 4])
  assert.match((await musterWith({ input: 'Bad Name' }, 'node', 'drain', '-')).err, /Bad is not a name for a node/)
})

test('what the rule of a verb refuses is shown in the plan, and counted as failed when it is done all the same', async (t) => {
  const { muster, ok } = await setUp(t)
  await ok('node', 'quarantine', 'gpu-001', '--reason', 'odd')
  const shown = await muster('node', 'release', 'gpu-*')
  assert.match(
    shown.out,
    /node gpu-001 .* released: comes back in a new epoch.*\nnode gpu-002 .* refused with NODE_STATE_CONFLICT: gpu-002 is /,
  )
  for (const verb of ['assign', 'move']) {
    const nowhere = await muster('node', verb, 'gpu-*', '--to', 'nowhere', '--yes')
    assert.deepEqual([nowhere.code, /VCLUSTER_NOT_FOUND[^]*nowhere/.test(nowhere.err)], [exitCodes.notFound, true])
  }
  const released = await muster('node', 'release', 'gpu-*', '--yes')
  assert.equal(released.code, exitCodes.partly)
  assert.match(released.out, /node gpu-001 +done.*\nnode gpu-002 +NODE_STATE_CONFLICT: /)
  assert.match(released.err, /^2 of 3 were left as they are/)
})

/** More than a page, and with MUSTER_LONG as many as one plan may select. */
const many = process.env['MUSTER_LONG'] === '1' ? 10_000 : 510

test(`${many} nodes are drained, cut off, released and revoked with one command each`, async (t) => {
  const world = await setUpCli(t)
  const numbers = Array.from({ length: many }, (_, at) => at)
  const register = (at: number) =>
    registerNode(world, { id: `n-${at}`, profile: null, macs: [], bmcSerial: null }, operator)
  for (let at = 0; at < many; at += 200) await Promise.all(numbers.slice(at, at + 200).map(register))
  for (const words of ['drain', 'quarantine --reason odd', 'release', 'revoke --reason sold']) {
    const { code, out, err } = await world.muster('node', ...words.split(' '), 'n-*', '--yes', '-o', 'json')
    assert.equal(code, exitCodes.ok, err)
    const { steps } = JSON.parse(out) as PlanApplied
    assert.equal(steps.filter(({ done }) => done).length, many)
  }
  const listed = await world.muster('node', 'list')
  assert.match(listed.err, new RegExp(`^${many} revoked not shown`))
  // More ids than a plan may name are selected by their names.
  const named = await world.muster('node', 'revoke', ...numbers.slice(0, 501).map((at) => `n-${at}`), '--reason', 'x')
  assert.deepEqual(
    [named.code, /n-500 .*nothing: it is revoked already/.test(named.out)],
    [exitCodes.onlyPlanned, true],
  )
  if (many < mostSelected) return
  await register(many)
  for (let at = 0; at < many; at += 200) await Promise.all(numbers.slice(at, at + 200).map(register))
  const tooMany = await world.muster('node', 'drain', 'n-*')
  assert.match(tooMany.err, /more than 10000 nodes match/)
})
