import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { eventually } from '../../../test/process/eventually.ts'
import type { ServiceHost, ServiceOrder } from './listed-services.ts'
import { servicesAsChildren } from './services-as-children.ts'

const order = (command: readonly string[], restart: ServiceOrder['restart']): ServiceOrder => ({
  ...{ name: 'app', digest: '0123456789abcdef', listing: '0'.repeat(16), env: {}, cwd: '/', user: null },
  limits: { memoryBytes: null, cpus: null, openFiles: null },
  command,
  restart,
})
/** Longer than the kernel takes: Node throws where it is to be started. */
const impossible = ['/bin/true', 'x'.repeat(300_000)]

const ended = async (services: ServiceHost) =>
  eventually('it to have ended', async () => {
    const [service] = await services.status()
    return service?.state === 'ended' && service.ended !== null ? service : null
  })

test('a service whose start the system refuses is tried again by its policy, and says why', async () => {
  const clock = manualClock(0)
  const services = servicesAsChildren(manualTimers(clock))
  assert.equal(await services.start(order(impossible, 'always')), 'started')
  for (const restarts of [1, 2, 3]) {
    const service = await ended(services)
    assert.match(service.ended ?? '', /could not be started: E2BIG/)
    assert.equal(service.restarts, restarts)
    clock.advance(60_000)
    await eventually('its next start', async () => ((await services.status())[0]?.restarts ?? 0) > restarts)
  }
  await services.close()
})

test('one that is left as it ended is not started by being asked for again, and one that waits for its restart is not hurried', async () => {
  const services = servicesAsChildren(manualTimers(manualClock(0)))
  await services.start(order(['/bin/true'], 'never'))
  assert.equal((await ended(services)).ended, 'exit code 0')
  assert.equal(await services.start(order(['/bin/true'], 'never')), 'kept')
  const other = { ...order(['/bin/false'], 'always'), digest: 'fedcba9876543210' }
  assert.equal(await services.start(other), 'started')
  assert.equal((await ended(services)).restarts, 1)
  assert.equal(await services.start(other), 'kept')
  assert.equal(await services.start({ ...other, listing: '1'.repeat(16) }), 'started', 'agent.toml lists another one')
  await services.close()
})
