// The dashboard and the rules name only what there is: every expression is read by Prometheus' own tool, and every metric
// is one a real plane shows, or one of the agent's.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { Command } from 'commander'
import { metricsText } from '#agent/diagnostics/metrics.ts'
import { noFigures } from '#agent/diagnostics/figures.ts'
import { planeMetrics } from '../../scripts/metrics-page.ts'
import { testCli, wholeProgram } from '../fakes/test-cli.ts'
import { repository } from '../process/child.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

type Panel = {
  readonly title: string
  readonly type: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string }[]
}

const packaging = (...names: string[]): string => fs.readFileSync(path.join(repository, 'packaging', ...names), 'utf8')
type Variable = { readonly name: string; readonly type: string; readonly definition?: string }
const dashboard = JSON.parse(packaging('grafana', 'muster.json')) as {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly Variable[] }
}
const rules = ['muster.rules.yml', 'muster-nodes.rules.yml'].map((name) => packaging('prometheus', name)).join('\n')
const expressions = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))

const plane = sharedPlane()

const output = {
  name: 'web',
  place: '/run/outputs/web',
  serial: 'a1',
  not_after: new Date(0).toISOString(),
  renew_at: null,
  lists_until: null,
  key_type: 'p256',
  names: [],
  reload: null,
  failure: null,
}

const namesIn = (text: string): string[] => [...new Set(text.match(/\bmuster_[a-z_]+/g))].sort()

/** As the text format has them: a histogram's samples have names of their own. */
const shownIn = (metrics: string): Set<string> =>
  new Set([...metrics.matchAll(/^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{| )/gm)].map(([, name]) => name ?? ''))

test('promtool reads every expression of the dashboard', (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  assert.ok(expressions.length > 40)
  const file = path.join(tempFolder(t), 'dashboard.yml')
  const recorded = expressions.map(({ expr }, at) => ({ record: `panel:expression:${at}`, expr }))
  fs.writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: recorded }] }))
  const checked = spawnSync(promtool, ['check', 'rules', '--lint=none', file], { encoding: 'utf8' })
  assert.equal(checked.status, 0, checked.stdout + checked.stderr)
})

test('promtool finds nothing wrong with the metrics of a plane', async (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  const { body } = await plane().api('GET', '/metrics')
  const ours = String(body)
    .split('\n')
    .filter((line) => /^(# (HELP|TYPE) )?muster_/.test(line))
    .map((line) => `${line}\n`)
    .join('')
  const checked = spawnSync(promtool, ['check', 'metrics'], { input: ours, encoding: 'utf8' })
  assert.equal(checked.status, 0, checked.stdout + checked.stderr)
})

test('what a plane shows is what docs/METRICS.md says it shows', async () => {
  const { body } = await plane().api('GET', '/metrics')
  const shown = [...String(body).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`)
  const declared = planeMetrics().map(({ name, type }) => `${name} ${type}`)
  assert.deepEqual(shown.toSorted(), declared.toSorted())
})

test('every metric that the dashboard and the rules name is shown by a plane or an agent, and the other way round', async () => {
  const { body } = await plane().api('GET', '/metrics')
  // What is about nodes and agents has no sample while there are none.
  const ofPlane = new Set([...shownIn(body), ...planeMetrics().map(({ name }) => name)])
  ofPlane.delete('muster_store_commit_seconds')
  const ofAgent = shownIn(
    metricsText({
      nowMs: 0,
      notAfterMs: 1,
      figures: noFigures,
      mounts: [{ mount: '/', availableBytes: 1 }],
      outputs: [output],
      tasks: [],
    }),
  )
  assert.equal(ofAgent.size, 15)
  const variables = dashboard.templating.list.map(({ definition = '' }) => definition)
  const named = namesIn([...expressions.map(({ expr }) => expr), ...variables, rules].join('\n'))
  assert.deepEqual(
    named.filter((name) => !ofPlane.has(name) && !ofAgent.has(name)),
    [],
  )
  // What nobody looks at need not be measured.
  const all = [...ofPlane, ...ofAgent].filter((name) => name.startsWith('muster_') && !/_(sum|count)$/.test(name))
  assert.deepEqual(
    all.filter((name) => !named.includes(name)),
    [],
  )
})

test('every command in an alerting rule exists', async () => {
  const program = await wholeProgram(testCli({}).cli)
  const commands = [...rules.matchAll(/\bmuster ((?:[a-z]+ )?[a-z]+)/g)].map(([, words]) => (words ?? '').split(' '))
  assert.ok(commands.length > 20)
  for (const words of commands) {
    const found = words.reduce<Command | undefined>(
      (at, word) => at?.commands.find((one) => one.name() === word),
      program,
    )
    assert.ok(found !== undefined, `muster ${words.join(' ')}`)
  }
})

test('the domain, the plane, the vCluster and the profile can be chosen, and every panel follows the choice', () => {
  const variables = dashboard.templating.list.map(({ name }) => name)
  assert.deepEqual(variables, ['datasource', 'domain', 'instance', 'vcluster', 'profile'])
  for (const { title, expr } of expressions)
    for (const [, selector = ''] of expr.matchAll(/\bmuster_[a-z_]+(\{[^}]*\})?/g))
      assert.match(selector, /"\$(instance|vcluster)\|?"/, title)
})

test('no two panels have one title or one expression', () => {
  const titles = dashboard.panels.map(({ title }) => title)
  assert.deepEqual(
    titles.filter((title, at) => titles.indexOf(title) !== at),
    [],
  )
  const whole = dashboard.panels.map(({ targets = [] }) => targets.map(({ expr }) => expr).join('\n')).filter(Boolean)
  assert.equal(new Set(whole).size, whole.length)
})

test('no two panels lie on each other', () => {
  const taken = new Map<string, string>()
  for (const { title, gridPos } of dashboard.panels) {
    const { x, y, w, h } = gridPos
    for (let column = x; column < x + w; column++)
      for (let line = y; line < y + h; line++) {
        assert.ok(column < 24, title)
        assert.equal(taken.get(`${column},${line}`), undefined, title)
        taken.set(`${column},${line}`, title)
      }
  }
})
