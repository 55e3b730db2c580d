// The plane that leads raises an alert before the revocation lists of programs are longer than agents take.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAlerting, type AlertingParts } from '#plane/alerts/alerting.ts'
import { openUnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { openFeed } from '#plane/core/feed.ts'
import { listLengthSource } from '#plane/programs/list-length.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { longestProgramList } from '#wire/programs/programs-api.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { makeSigner, openStore } from '../store/harness.ts'
import { startMs } from './authority-setup.ts'

test('lists at half of what agents take have an alert, raised in a round of all alerts and ended in another', async (t) => {
  const store = await openStore(tempFolder(t), makeSigner())
  cleanup(t, () => store.close())
  const clock = manualClock(startMs)
  const timers = manualTimers(clock)
  const feed = openFeed()
  const core = { store, feed, clock, random: systemRandom, timers, log: silentLog }
  const alerts = await openUnresolvedAlerts(store, feed)
  const authority = { aging: () => [], lost: () => [], longestLeafMs: () => 1 }
  const alerting = openAlerting(core, {
    authority: authority as unknown as AlertingParts['authority'],
    ...{
      servers: () => ({}),
      alerts,
      webhook: null,
      clockToleranceMs: 30_000,
      domainName: 'lab',
      onDelivery: () => {},
    },
  })
  let length = longestProgramList / 2
  const listed = { issuer: 'ca1', role: 'issuing' as const, number: 1, next_update: '' }
  const lists = async () => ({ roots: [], lists: [{ ...listed, list: 'x'.repeat(length) }] })
  alerting.watch(listLengthSource({ lists }, 'lab'))
  const led = alerting.lead(core)
  cleanup(t, async () => {
    await led.stop()
    await alerting.stop()
  })
  const isOpen = (): boolean => {
    timers.advance(10_000)
    return alerts.has('program_lists_long', 'lab')
  }
  await eventually('an alert', isOpen)
  const [alert] = [...alerts.all()]
  assert.equal(alert?.severity, 'warning')
  assert.match(alert?.reason ?? '', /list of ca1 has 1048576 bytes, and agents take 2097152/)
  length = 1000
  await eventually('its end', () => !isOpen())
})
