// docs/SOURCES.md says what the names of the source documents are here. Every name in a column of Muster is looked up.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { conditionNames, membershipKinds, provisioningStates } from '#domain/core/node.ts'
import { entryTypes } from '#domain/core/journal-entry.ts'
import { taskStates } from '#domain/tasks/task.ts'
import { agentMetrics, metricPrefix } from '#agent/diagnostics/metrics.ts'
import { everyListener } from '#wire/listeners.ts'
import { testCli, wholeProgram } from '../fakes/test-cli.ts'
import { planeMetrics } from '../../scripts/metrics-page.ts'
import { openApiText } from '../../scripts/openapi.ts'
import { filesBelow, root } from '../../scripts/repository.ts'

const page = fs.readFileSync(path.join(root, 'docs', 'SOURCES.md'), 'utf8')
const program = await wholeProgram(testCli({}).cli)

const routes = new Set(
  everyListener.flatMap(({ endpoints }) =>
    endpoints.map((one) => `${one.method} ${one.path.replace(/:(\w+)/g, '{$1}')}`),
  ),
)
const metrics = new Set([
  ...planeMetrics().map(({ name }) => name),
  ...agentMetrics.map(({ name }) => `${metricPrefix}${name}`),
])
const states = new Set<string>([
  ...membershipKinds,
  ...conditionNames,
  ...provisioningStates,
  ...taskStates,
  ...['draining', 'drained', 'unavailable'],
])
const entries = new Set<string>(entryTypes)
const properties = new Set([...openApiText().matchAll(/"([a-z_]+)": [{[]/g)].map(([, name]) => name ?? ''))
const eventFields = new Set(['host_id'])
const source = filesBelow(path.join(root, 'src'), root)
  .filter((file) => /(?<!\.test)\.ts$/.test(file))
  .map((file) => fs.readFileSync(path.join(root, file), 'utf8'))
  .join('\n')

const commandExists = (words: readonly string[]): boolean => {
  let at = program
  let taken = 0
  for (const word of words) {
    const child = at.commands.find((one) => one.name() === word)
    if (child === undefined) break
    at = child
    taken++
  }
  return taken > 0 && at.commands.length === 0
}

/** Null: it is there. */
const faultOf = (section: string, name: string): string | null => {
  const found = /^(GET|POST|PATCH) /.test(name)
    ? routes.has(name)
    : name.startsWith('muster ')
      ? commandExists(name.split(' ').slice(1))
      : name.startsWith('muster_')
        ? metrics.has(name)
        : name.startsWith('MUSTER_')
          ? source.includes(`'${name}'`)
          : name.startsWith('src/')
            ? fs.existsSync(path.join(root, name))
            : section === 'Events'
              ? entries.has(name)
              : section === 'States'
                ? states.has(name)
                : properties.has(name) || eventFields.has(name)
  return found ? null : `${section}: ${name}`
}

/** Code spans of the columns whose head has `Muster` in it. */
const namesIn = (text: string): (readonly [section: string, name: string])[] =>
  text
    .split(/^## /m)
    .slice(1)
    .flatMap((part) => {
      const [section = '', ...lines] = part.split('\n')
      const rows = lines.filter((line) => line.startsWith('|')).map((line) => line.split('|').slice(1, -1))
      const [head = [], , ...body] = rows
      const columns = head.flatMap((cell, at) => (cell.includes('Muster') ? [at] : []))
      return body.flatMap((row) =>
        columns.flatMap((at) =>
          [...(row[at] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => [section, name ?? ''] as const),
        ),
      )
    })

test('everything that the map of the source documents names exists', () => {
  const names = namesIn(page)
  assert.ok(names.length > 100)
  assert.deepEqual(
    names.flatMap(([section, name]) => faultOf(section, name) ?? []),
    [],
  )
})

test('a name that does not exist is found, of each kind', () => {
  const wrong = [
    ['Calls', 'POST /v1/hosts'],
    ['Commands', 'muster node frobnicate ID'],
    ['Metrics', 'muster_nothing_total'],
    ['Events', 'node.vanished'],
    ['States', 'asleep'],
    ['Variables', 'MUSTER_NOTHING'],
    ['Fields', 'no_such_field'],
    ['Calls', 'src/no-such-file.ts'],
  ] as const
  for (const [section, name] of wrong) assert.equal(faultOf(section, name), `${section}: ${name}`)
})

const rowsOf = (text: string): readonly string[] => text.split('\n').filter((line) => line.startsWith('|'))

/** `GET /internal/v1/nodes/{id}/tasks/wait` -> `/nodes/{}/tasks/wait`: what is left when the prefixes of each document are gone. */
const bareCall = (call: string): string =>
  call
    .replace(/^[A-Z]+ /, '')
    .replace(/\?.*$/, '')
    .replace(/^\/(internal|api)(?=\/)/, '')
    .replace(/^\/v1(?=\/)/, '')
    .replace(/^\/admin(?=\/)/, '')
    .replace(/\{\w+\}/g, '{}')

/** What a row says is not here, and is: a call whose path a route ends with, or an event whose words are an entry of the journal. */
const foundAfterAll = (row: string): string[] => {
  const [, , there = '', here = ''] = row.split('|')
  if (!here.includes('not here')) return []
  const paths = [...routes].map(bareCall)
  const calls = [...there.matchAll(/`((?:[A-Z]+ )?\/[^`]+)`/g)].map(([, call]) => call ?? '')
  const [noun = '', ...verbs] = there.trim().split(/[ ,]+/)
  return [
    ...calls.filter((call) => paths.some((one) => one.endsWith(bareCall(call)))),
    ...verbs.map((verb) => `${noun}.${verb}`).filter((entry) => entries.has(entry)),
  ]
}

test('what the map says is not here is no route and no entry of the journal', () => {
  assert.deepEqual(rowsOf(page).flatMap(foundAfterAll), [])
})

test('a row that says so of what exists is found', () => {
  const calls =
    '| 004 | `GET /internal/v1/nodes/{id}/tasks/wait`, `POST /tasks/{id}/result`, `GET /v1/none` | not here: no tasks |'
  assert.deepEqual(foundAfterAll(calls), ['GET /internal/v1/nodes/{id}/tasks/wait', 'POST /tasks/{id}/result'])
  assert.deepEqual(foundAfterAll('| 004 | task queued, claimed, result | not here |'), ['task.queued'])
})

test('each entry about what the source documents record has a row: tokens, hosts, recovery and tasks', () => {
  const named = new Set(namesIn(page).flatMap(([section, name]) => (section === 'Events' ? [name] : [])))
  const recorded = entryTypes.filter((type) => /^(enrollment_token|host|task)\.|^node\.recover(y|ed)/.test(type))
  assert.ok(recorded.length > 12)
  assert.deepEqual(
    recorded.filter((type) => !named.has(type)),
    [],
  )
})

test('each of the eleven metrics of document 003 has a row, and so has each of its audit events', () => {
  const rows = rowsOf(page)
  const eleven = agentMetrics.map(({ name }) => name).filter((name) => !/^(program_|task)/.test(name))
  assert.equal(eleven.length, 11)
  for (const name of [...eleven, 'enrollment_token.created', 'host.enrolled', 'host.revoked'])
    assert.ok(
      rows.some((row) => row.includes(`\`${name}\``)),
      name,
    )
})
