import assert from 'node:assert/strict'
import { test } from 'node:test'
import { driftOfServices } from './drift.ts'
import { openHelperRunner, type HelperServices } from './helped-runner.ts'
import { usualTerms, type WantedService } from './wanted-services.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'

type Request = Parameters<HelperServices['start']>[0]
type Helped = Awaited<ReturnType<HelperServices['status']>>['services'][number]

/** Runs the services that its list has, as the helper does by the host's agent.toml. */
const listing = (...names: readonly string[]) => {
  const running = new Map<string, Helped>()
  const asked: Request[] = []
  const helper: HelperServices = {
    start: (request) => {
      const { name, digest } = request
      if (!names.includes(name)) return Promise.reject(new Error(`service ${name} is not listed in agent.toml`))
      if (running.get(name)?.digest === digest) return Promise.resolve({ outcome: 'kept' })
      asked.push(request)
      running.set(name, { name, digest, state: 'running', restarts: 0, pid: 1, ended: null, lines: [] })
      return Promise.resolve({ outcome: 'started' })
    },
    stop: ({ name }) => Promise.resolve(running.delete(name)),
    status: () => Promise.resolve({ services: [...running.values()] }),
  }
  const becomes = (changes: Partial<Helped>): void => {
    const before = running.get('app')
    if (before !== undefined) running.set('app', { ...before, ...changes })
  }
  return { helper, asked, becomes }
}

const shownOf = (name: string) => ({
  definition: { name, command: [`/bin/${name}`, '-v'], terms: null },
  folder: '/state/overlay/current',
})
const service = (name: string, digest: string, terms: Partial<WantedService['terms']> = {}): WantedService => ({
  ...{ name, command: [`/bin/${name}`, '-v'], digest, formerDigest: null, needsFiles: false, shown: shownOf(name) },
  terms: { ...usualTerms, ...terms },
})

test('the helper gets arguments, environment and folder, and neither an executable nor a user', async () => {
  const { helper, asked, becomes } = listing('app')
  const runner = openHelperRunner(helper, manualClock(0))
  const wanted = service('app', 'a', { user: 'app', environment: { A: '1' }, memoryBytes: 2 ** 20 })
  assert.equal(await runner.ensure(wanted, { MUSTER_NODE: 'n' }), 'started')
  assert.equal(await runner.ensure(wanted, { MUSTER_NODE: 'n' }), 'kept')
  assert.deepEqual(asked, [
    {
      ...{ name: 'app', digest: 'a', arguments: ['-v'], restart: 'always', working_directory: null },
      environment: { MUSTER_NODE: 'n', A: '1' },
      limits: { memory_bytes: 2 ** 20, cpus: null, open_files: null },
      overlay: shownOf('app'),
    },
  ])
  const unapplied = async () => (await runner.services())[0]?.unapplied
  assert.deepEqual(await unapplied(), ['user (the one in agent.toml)'])
  becomes({ unapplied: ['limits.memoryBytes'] })
  const [shown] = await runner.services()
  assert.deepEqual(
    [shown?.state, shown?.unapplied],
    ['running', ['user (the one in agent.toml)', 'limits.memoryBytes']],
  )
  await runner.stop(['app'])
  assert.deepEqual(await runner.services(), [])
})

test('what the host does not list is refused, in the words of the helper', async () => {
  const runner = openHelperRunner(listing('app').helper, manualClock(0))
  await assert.rejects(runner.ensure(service('other', 'a'), {}), /service other is not listed in agent\.toml/)
})

test('one that keeps ending has failed until it has run for a while, with what it wrote', async () => {
  const { helper, becomes } = listing('app')
  const clock = manualClock(0)
  const runner = openHelperRunner(helper, clock)
  await runner.ensure(service('app', 'a'), {})
  const state = async () => (await runner.services())[0]
  becomes({ state: 'ended', pid: null, restarts: 1, ended: 'exit code 1', lines: ['no such table'] })
  assert.equal((await state())?.state, 'starting')
  becomes({ restarts: 3 })
  const failed = await state()
  assert.deepEqual([failed?.state, failed?.error, failed?.output], ['failed', 'exit code 1', ['no such table']])
  becomes({ state: 'running', pid: 9 })
  assert.equal((await state())?.state, 'failed')
  clock.advance(10_000)
  assert.equal((await state())?.state, 'running')
})

test('one that may end has ended; one that could not be started has failed at once', async () => {
  const { helper, becomes } = listing('app')
  const runner = openHelperRunner(helper, manualClock(0))
  await runner.ensure(service('app', 'a', { restart: 'on-failure' }), {})
  becomes({ state: 'ended', pid: null, ended: 'exit code 0' })
  assert.equal((await runner.services())[0]?.state, 'ended')
  becomes({ ended: 'could not be started: ENOENT' })
  assert.equal((await runner.services())[0]?.state, 'failed')
})

test('one that the host has ended has failed, and is not the one that is wanted: where the vCluster enforces it is asked for again', async () => {
  const { helper, becomes } = listing('app')
  const runner = openHelperRunner(helper, manualClock(0))
  const wanted = service('app', 'a')
  await runner.ensure(wanted, {})
  const why = 'could not be started again: agent.toml lists service app otherwise than it was started'
  becomes({ state: 'ended', digest: '', pid: null, ended: why })
  const services = await runner.services()
  assert.deepEqual([services[0]?.state, services[0]?.error], ['failed', why])
  assert.deepEqual(driftOfServices([wanted], services), ['service app: not the one that was started'])
  assert.equal(await runner.ensure(wanted, {}), 'started')
})
