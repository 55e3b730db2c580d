// The alert rules, checked and run by Prometheus' own tool: each fires on what it is for, and is silent on what looks
// like it. JSON is YAML too, so the cases are written as values (rule-cases.ts) and handed over.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { repository } from '../process/child.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'
import { everyday, firing, type Case } from './rule-cases.ts'

const ruleFiles = ['muster.rules.yml', 'muster-nodes.rules.yml'].map((name) =>
  path.join(repository, 'packaging', 'prometheus', name),
)
const rules = ruleFiles.map((file) => fs.readFileSync(file, 'utf8')).join('\n')
const alertNames = [...rules.matchAll(/^ {6}- alert: (\w+)$/gm)].map(([, name]) => name ?? '')

const isFiring = (alert: string, at: string, count: 0 | 1) => ({
  expr: `count(ALERTS{alertname="${alert}", alertstate="firing"})`,
  eval_time: at,
  exp_samples: count === 0 ? [] : [{ labels: '{}', value: 1 }],
})

const inputOf = (series: Readonly<Record<string, string>>) =>
  Object.entries(series).map(([name, values]) => ({ series: name, values }))

type Run = { readonly of: readonly string[]; readonly every: '1m' | '10m'; readonly tests: readonly object[] }

const runTests = (t: TestContext, promtool: string, { of, every, tests }: Run) => {
  const file = path.join(tempFolder(t), 'rules.test.yml')
  fs.writeFileSync(file, JSON.stringify({ rule_files: of, evaluation_interval: every, tests }))
  return spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' })
}

test('promtool accepts the rules, and each has a case', (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  const checked = spawnSync(promtool, ['check', 'rules', ...ruleFiles], { encoding: 'utf8' })
  assert.equal(checked.status, 0, checked.stderr)
  assert.deepEqual(firing.map(({ alert }) => alert).sort(), alertNames.toSorted())
})

test('promtool accepts every scrape configuration that the documents show', (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  const docs = path.join(repository, 'docs')
  const blocks = fs
    .readdirSync(docs)
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => [
      ...fs.readFileSync(path.join(docs, name), 'utf8').matchAll(/^```yaml\n(scrape_configs:\n[^]*?)^```$/gm),
    ])
  assert.ok(blocks.length >= 4)
  const faults = blocks.flatMap(([, block = '']) => {
    const file = path.join(tempFolder(t), 'prometheus.yml')
    fs.writeFileSync(file, block)
    const { status, stdout, stderr } = spawnSync(promtool, ['check', 'config', '--syntax-only', file], {
      encoding: 'utf8',
    })
    return status === 0 ? [] : [block + stdout + stderr]
  })
  assert.deepEqual(faults, [])
})

test('every rule fires on what it is for, and not before its time', (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  const testOf = ({ alert, series, fires, silent }: Case) => ({
    interval: '1m',
    name: alert,
    input_series: inputOf(series),
    promql_expr_test: [isFiring(alert, fires, 1), ...(silent === undefined ? [] : [isFiring(alert, silent, 0)])],
  })
  // promtool evaluates every rule of the files for every case: less often where it takes a day, and one file at a time.
  const takesLong = ({ fires }: Case): boolean => /^\d\dh/.test(fires)
  for (const file of ruleFiles) {
    const own = firing.filter(({ alert }) => fs.readFileSync(file, 'utf8').includes(`- alert: ${alert}\n`))
    for (const [every, cases] of [
      ['1m', own.filter((one) => !takesLong(one))],
      ['10m', own.filter(takesLong)],
    ] as const) {
      const ran = runTests(t, promtool, { of: [file], every, tests: cases.map(testOf) })
      assert.equal(ran.status, 0, ran.stdout + ran.stderr)
    }
  }
})

test('no rule fires on ordinary days', (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  const times = ['30m', '2h', '11h', '13h', '25h', '50h']
  const tests = [
    {
      interval: '1m',
      input_series: inputOf(everyday),
      promql_expr_test: times.flatMap((at) => alertNames.map((alert) => isFiring(alert, at, 0))),
    },
  ]
  const ran = runTests(t, promtool, { of: ruleFiles, every: '10m', tests })
  assert.equal(ran.status, 0, ran.stdout + ran.stderr)
})

test('every rule leads to what docs/ALERTS.md says about it, and that page is about no other', () => {
  const page = fs.readFileSync(path.join(repository, 'docs', 'ALERTS.md'), 'utf8')
  const anchors = [...page.matchAll(/^### (\w+)$/gm)].map(([, heading]) => (heading ?? '').toLowerCase())
  const led = [...rules.matchAll(/^ +runbook_url: https:\/\/muster\.example\/docs\/ALERTS\.md#(\w+)$/gm)]
  assert.deepEqual(
    led.map(([, anchor]) => anchor),
    alertNames.map((name) => name.toLowerCase()),
  )
  assert.deepEqual(anchors.toSorted(), alertNames.map((name) => name.toLowerCase()).toSorted())
})
