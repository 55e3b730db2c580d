import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OverlayStateBody } from '#wire/node/node-runs.ts'
import { openOverlayReporter, type AppliedOverlay } from './overlay-reporter.ts'
import type { RunningService } from './service-runner.ts'

const appliedWith = (running: readonly RunningService[], why: string): AppliedOverlay => ({
  ...{ applied: true, detail: null, stopped: [], started: [], drift: [], running, checks: [] },
  unstarted: [{ name: 'app', why }],
  config: { revision: 3, overlay: { services: [{ name: 'app', command: ['/bin/app'] }] } } as never,
})

const reported = (how: AppliedOverlay): OverlayStateBody['services'][number] | undefined => {
  const sent: OverlayStateBody[] = []
  const reporter = openOverlayReporter({ facts: () => {} })
  reporter.use({ overlayState: (body) => void sent.push(body), capabilities: () => {} })
  reporter.state(how)
  return sent[0]?.services[0]
}

test('a changed service that is refused is failed, and its line says that the one of before still runs', () => {
  const app: RunningService = {
    ...{ name: 'app', digest: 'a', state: 'running', restarts: 0, pid: 7, error: null, output: [], unapplied: [] },
  }
  const why = 'NOT_IN_STATEMENT: service app is not what the plane has signed'
  assert.deepEqual(reported(appliedWith([app], why)), {
    ...{ name: 'app', state: 'failed', restarts: 0 },
    error: `${why}; the service it was before still runs`,
  })
  assert.equal(reported(appliedWith([], why))?.error, why)
  const long = reported(appliedWith([app], 'x'.repeat(300)))?.error ?? ''
  assert.deepEqual([long.length, long.endsWith('still runs')], [256, true])
})
