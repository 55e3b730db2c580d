// The status listener takes so many calls a minute, and the rest are turned away and counted.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { openStatusListener } from '#plane/ca/status-listener.ts'
import { measureStatus } from '#plane/metrics/measure-status.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { wideLimits } from '../fakes/wide-limits.ts'
import { cleanup } from '../process/cleanup.ts'
import { startMs } from './authority-setup.ts'
import type { Store } from '#plane/store/contract/store.ts'

test('calls at the status listener beyond its limit get a retry time, and are on /metrics', async (t) => {
  const registry = new Registry()
  const { overLimit } = measureStatus([registry])
  const clock = manualClock(startMs)
  const store = { replicas: { standing: () => ({ kind: 'serving' }) } } as unknown as Store
  const core = { store, timers: systemTimers, log: silentLog }
  const listener = openStatusListener(core, {
    answerOcsp: async () => ({ der: new Uint8Array(1), outcomes: ['good', 'unknown'], goodFrom: null }),
    lists: { list: async () => null },
    budget: openCallerBudget(clock, () => ({ perMinute: 3, perMinutePerSource: 2 })),
    limits: wideLimits,
    onOcsp: () => {},
    onOverLimit: overLimit,
    onAborted: () => {},
  })
  const port = await listener.listen({ host: '127.0.0.1', port: 0, shared: false })
  cleanup(t, () => listener.stop(1000))
  const call = (): Promise<Response> => fetch(`http://127.0.0.1:${port}/crl/00aa.crl`)
  const counted = async () =>
    /^muster_status_requests_over_limit_total (\d+)$/m.exec(await registry.metrics())?.[1] ?? assert.fail()

  for (const status of [404, 404]) assert.equal((await call()).status, status)
  assert.equal(await counted(), '0')
  const over = await call()
  assert.deepEqual([over.status, over.headers.get('retry-after')], [429, '60'])
  assert.equal((await call()).status, 429)
  assert.equal(await counted(), '2')
  clock.advance(60_000)
  assert.equal((await call()).status, 404)
  assert.equal(await counted(), '2')
  clock.advance(60_000)
  assert.equal((await fetch(`http://127.0.0.1:${port}/ocsp/MAA=`)).status, 200)
  assert.equal((await call()).status, 429, 'it was a question about two')
})
