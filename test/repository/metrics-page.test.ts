// docs/METRICS.md is what the declarations say.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { metricsPage, metricsPageText, planeMetrics } from '../../scripts/metrics-page.ts'

test('docs/METRICS.md is what scripts/metrics-page.ts writes', async () => {
  assert.ok(fs.readFileSync(metricsPage, 'utf8') === (await metricsPageText()), 'run: node scripts/metrics-page.ts')
})

test('every metric of Muster says what it means in a sentence without a full stop', () => {
  const own = planeMetrics().filter(({ name }) => name.startsWith('muster_'))
  assert.ok(own.length > 60)
  for (const { name, help } of own) assert.match(help, /^[A-Z0-9].{10,}[^.]$/s, name)
})
