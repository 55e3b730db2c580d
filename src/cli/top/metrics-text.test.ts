import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMetrics, totalOf, totalsBy } from './metrics-text.ts'

const text = `# HELP muster_nodes Nodes
# TYPE muster_nodes gauge
muster_nodes{membership="active",vcluster="a"} 3
muster_nodes{membership="active",vcluster="b \\"c\\" \\\\ d"} 4
muster_nodes{membership="revoked",vcluster="a"} 1
muster_ready 1
muster_feed_age_seconds +Inf
muster_odd NaN
not a metric
`

test('samples are read with their labels, and added up over the labels that are not asked for', () => {
  const samples = parseMetrics(text)
  assert.equal(samples.length, 5)
  assert.equal(samples[1]?.labels['vcluster'], 'b "c" \\ d')
  assert.deepEqual(totalsBy(samples, 'muster_nodes', 'membership'), { active: 7, revoked: 1 })
  assert.equal(totalOf(samples, 'muster_ready'), 1)
  assert.equal(totalOf(samples, 'muster_feed_age_seconds'), Number.POSITIVE_INFINITY)
  assert.equal(totalOf(samples, 'muster_absent'), null)
})
