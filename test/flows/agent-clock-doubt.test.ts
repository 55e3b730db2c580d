// A clock that moved by itself is asked about before anything is done because of it, over real TLS.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { openClockCheck } from '#agent/identity/clock-check.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { openJudgedClock } from '#agent/core/judged-clock.ts'
import { systemClock } from '#platform/clock.ts'
import { connectingAgent } from '../fakes/connecting-agent.ts'
import { pinned, startDatedPlane, timesAt } from '../fakes/dated-plane.ts'
import { testAgentConfig } from '../fakes/test-agent.ts'

const now = timesAt(systemClock.nowMs())
const hour = 3_600_000
const join = { url: 'https://localhost', domain: 'example.test', rootFingerprint: '', secret: null, marked: false }

test('the plane is asked what time it is once for every jump of the clock, and for none of its ordinary steps', async (t) => {
  const plane = await startDatedPlane(t, now)
  let jumpedMs = 0
  const agent = {
    ...connectingAgent(t),
    clock: openJudgedClock({ ...systemClock, nowMs: () => systemClock.nowMs() + jumpedMs }),
    config: testAgentConfig(t, join, {}),
    signal: new AbortController().signal,
  } as unknown as AgentParts
  const url = `https://localhost:${plane.port}`
  const identity = {
    domain: pinned.domain,
    endpoints: { runtime: [url] },
    origin: { url },
    roots: now.trust.kind === 'roots' ? now.trust.roots : [],
    recovery: { trust: { roots: [], statement_keys: pinned.statementKeys } },
  } as unknown as Identity
  const asked = (): number => plane.calls.length

  // No call has been answered yet.
  const untold = openClockCheck(agent)
  assert.equal(await untold.settle(identity), null)
  assert.equal(asked(), 1)

  agent.record.count({ kind: 'exchanged' })
  const doubt = openClockCheck(agent)
  doubt.look(300_000)
  await doubt.settle(identity)
  assert.equal(asked(), 1)
  jumpedMs = hour
  doubt.look(300_000)
  assert.equal(await doubt.settle(identity), null)
  assert.equal(asked(), 2)
  assert.ok(Math.abs(agent.clock.nowMs() - systemClock.nowMs()) < 60_000, 'it goes by the time of the plane')
  // To a clock that goes by the plane, whatever is done to the machine's is no jump.
  for (const wrongMs of [hour, -hour, 0]) {
    jumpedMs = wrongMs
    doubt.look(300_000)
    await doubt.settle(identity)
    assert.equal(asked(), 2)
  }
})
