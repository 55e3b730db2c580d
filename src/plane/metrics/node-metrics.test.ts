import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeId } from '#domain/core/node.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { systemTimers } from '#platform/timers.ts'
import { inShard } from '#plane/core/shard.ts'
import type { NodeFigures } from '#plane/node/agent-figures.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { noonMs } from '../../../test/fakes/sample-rows.ts'
import { openAgentCensus } from './agent-census.ts'
import { openGroups } from './group-labels.ts'
import { nodeSeries, openNodeMetrics } from './node-metrics.ts'

const figures: NodeFigures = {
  profile: 'gpu-cloud',
  vcluster: 'training',
  reportedAtMs: noonMs,
  certificateEndsMs: noonMs + 60_000,
  clockSkewMs: -1500,
  freeBytes: { identity: 1, diagnostic: 2, retry: 3, runtime: 4 },
  counts: [0, 7],
  outputs: [{ name: 'a "web"', endsMs: noonMs + 30_000, inPlace: true }],
}
const fleet = (count: number): (readonly [NodeId, NodeFigures])[] =>
  Array.from({ length: count }, (_, at) => [`n-${at}`, figures] as const)

const open = (nodes: readonly (readonly [NodeId, NodeFigures])[], enabled = true) =>
  openNodeMetrics({ clock: manualClock(noonMs), timers: systemTimers }, { all: () => nodes }, enabled)

const piecesOf = async (metrics: ReturnType<typeof open>, shard: Parameters<typeof metrics.text>[0] = null) => {
  const text = await metrics.text(shard)
  if ('kind' in text) assert.fail(text.detail ?? text.code)
  return text
}

test('each node has its series, in one group for each metric, and awkward names are escaped', async () => {
  const pieces: string[] = []
  for await (const piece of await piecesOf(open(fleet(2)))) pieces.push(piece)
  const lines = pieces.join('').trimEnd().split('\n')
  assert.deepEqual(
    lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2]),
    nodeSeries.map(({ name }) => name),
  )
  const names = lines.filter((line) => !line.startsWith('#')).map((line) => line.replace(/\{.*/, ''))
  assert.equal(names.filter((name, at) => name !== names[at - 1]).length, new Set(names).size)
  const of = 'node="n-1",vcluster="training",profile="gpu-cloud"'
  for (const line of [
    `muster_node_agent_cert_expiry_seconds{${of}} 60`,
    `muster_node_agent_clock_skew_seconds{${of}} -1.5`,
    `muster_node_agent_cert_renewal_attempts_total{${of}} 7`,
    `muster_node_agent_recovery_enrollment_success_total{${of}} 0`,
    `muster_node_agent_program_cert_expiry_seconds{${of},output="a \\"web\\""} 30`,
  ])
    assert.ok(lines.includes(line), line)
})

test('more nodes than an answer has are refused, with the shards to ask for; a shard of them is answered', async () => {
  const metrics = open(fleet(15_000))
  const refusal = await metrics.text(null)
  assert.ok(isRefusal(refusal))
  assert.deepEqual([refusal.code, refusal.field?.path], ['REQUEST_INVALID', 'shard'])
  assert.match(refusal.detail ?? '', /shard=0\/2 to shard=1\/2/)
  await piecesOf(metrics, { part: 1, of: 2 })
})

test('two answers are written at a time, a third caller comes back later, and a reader who leaves makes room', async () => {
  const metrics = open(fleet(1))
  const readers = [await piecesOf(metrics), await piecesOf(metrics)].map((text) => text[Symbol.asyncIterator]())
  for (const reader of readers) await reader.next()
  const refusal = await metrics.text(null)
  assert.ok(isRefusal(refusal))
  assert.deepEqual([refusal.code, refusal.retryAfterMs], ['BUSY', 5000])
  await readers[0]?.return?.()
  await piecesOf(metrics)
})

test('of ten callers at once two are answered, and who leaves without reading anything makes room', async () => {
  const metrics = open(fleet(2500))
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => metrics.text(null)))
  const answers = outcomes.flatMap((outcome) => ('kind' in outcome ? [] : [outcome]))
  assert.equal(answers.length, 2)
  await answers[0]?.return?.()
  await answers[0]?.return?.()
  await piecesOf(metrics)
  assert.ok(isRefusal(await metrics.text(null)), 'one that is returned twice makes room once')
})

test('who is refused, or meets a fault, takes no room', async () => {
  let nodes = fleet(10_001)
  let fault: Error | null = null
  const all = () => {
    if (fault !== null) throw fault
    return nodes
  }
  const metrics = openNodeMetrics({ clock: manualClock(noonMs), timers: systemTimers }, { all }, true)
  for (let asked = 0; asked < 3; asked++) assert.ok(isRefusal(await metrics.text(null)))
  fault = new Error('broken')
  for (let asked = 0; asked < 3; asked++) await assert.rejects(metrics.text(null), /broken/)
  fault = null
  nodes = fleet(1)
  await piecesOf(metrics)
  for await (const piece of await piecesOf(metrics)) assert.ok(piece)
  await piecesOf(metrics)
})

test('nothing is shown where metrics of single nodes are off', async () => {
  const refusal = await open(fleet(1), false).text(null)
  assert.ok(isRefusal(refusal))
  assert.equal(refusal.code, 'NOT_FOUND')
})

test('every node is in one shard, and shards are about as large as each other', () => {
  const sizes = [0, 1, 2, 3].map((part) => fleet(4000).filter(([id]) => inShard({ part, of: 4 }, id)).length)
  assert.equal(
    sizes.reduce((sum, size) => sum + size),
    4000,
  )
  assert.ok(Math.min(...sizes) > 800, sizes.join())
})

test('agents are added up a slice at a time, once for all who ask within ten seconds', async () => {
  const clock = manualClock(noonMs)
  let turns = 0
  let walks = 0
  const nodes = fleet(2500)
  const census = openAgentCensus(
    { clock, timers: { soon: (run) => (turns++, systemTimers.soon(run)) } },
    { all: () => (walks++, nodes) },
    openGroups(),
  )
  const [first, second] = await Promise.all([census(), census()])
  assert.equal(first, second)
  const [[labels, group] = assert.fail()] = first
  assert.deepEqual(labels, { vcluster: 'training', profile: 'gpu-cloud' })
  assert.deepEqual([group.nodes, group.mostSkewMs, group.leastFreeBytes.retry], [2500, 1500, 3])
  assert.deepEqual([group.outputsInPlace, group.outputsFailing, group.firstLeafEndMs], [2500, 0, noonMs + 30_000])
  assert.deepEqual([turns, walks], [2, 1])
  clock.advance(10_000)
  await census()
  assert.equal(walks, 2)
})
