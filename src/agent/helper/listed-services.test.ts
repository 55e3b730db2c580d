import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { test } from 'node:test'
import { silentLog } from '#platform/log.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import type { ListedService } from './agent-toml.ts'
import { listingOf, openListedServices, type ServiceHost } from './listed-services.ts'
import { openTurns } from './turns.ts'

const app: ListedService = {
  executable: '/usr/bin/app',
  user: 'app',
  arguments: 'any',
  environment: [],
  workingDirectory: null,
}

test('a service goes on through a file that lists it no more for a moment, and ends with the second look that agrees', async () => {
  const running = new Set(['app'])
  const host: ServiceHost = {
    start: () => Promise.resolve('started'),
    stop: async (name) => void running.delete(name),
    started: async () => [...running].map((name) => ({ name, digest: '', listing: listingOf(app) })),
    status: async () => [],
    close: async () => {},
  }
  const timers = manualTimers(manualClock(0))
  let listed: ReadonlyMap<string, ListedService> | null = new Map([['app', app]])
  const services = openListedServices(host, () => listed, openTurns(timers), { timers, log: silentLog }, 5_000)
  const look = async (): Promise<boolean> => {
    timers.advance(5_000)
    for (let turn = 0; turn < 5; turn++) await setImmediate()
    return running.has('app')
  }
  assert.ok(await look())
  for (const moment of [new Map(), null]) {
    listed = moment
    assert.ok(await look())
    listed = new Map([['app', app]])
    assert.ok(await look())
  }
  listed = new Map()
  assert.ok(await look())
  assert.ok(!(await look()))
  const [ended] = await services.status()
  assert.match(ended?.ended ?? '', /agent\.toml does not list service app any more/)
  await services.close()
})
