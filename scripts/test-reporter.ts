// What became of the test files of a worker, and how it is told: a line a file; failures in full, with what the file printed;
// skips with their reason; the sum at the end.

import * as fs from 'node:fs'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

export type Counts = { readonly tests: number; readonly passed: number; readonly skipped: number }

export type FileReport = {
  readonly counts: Counts
  readonly seconds: number
  /** Of the processors, by the worker and every process that was started for the file and has ended; null: unknown. */
  readonly cpuSeconds: number | null
  /** Null: they were not counted. */
  readonly assertions: number | null
  readonly outcome: 'passed' | 'failed' | 'did not finish'
  readonly failures: readonly string[]
  readonly skips: readonly string[]
  readonly notes: readonly string[]
}

/** By count-assertions.ts, in a process that loads it; null elsewhere. */
export const counted: { assertions: number | null } = { assertions: null }

/** For `--test-reporter` of a worker: sends a FileReport to the runner whenever a file has ended, and prints nothing. */
export default async function* sendReports(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const report of reportsOf(source)) {
    process.send?.(report)
    yield ''
  }
}

const none = { tests: 0, passed: 0, skipped: 0 }

async function* reportsOf(source: AsyncIterable<TestEvent>): AsyncGenerator<FileReport> {
  let [failures, skips, notes]: [string[], string[], string[]] = [[], [], []]
  let counts = { ...none }
  // Those of the start of the worker are its first file's: this begins to run when that is under way.
  let [cpuBefore, assertionsBefore] = [0, 0]
  for await (const { type, data } of source) {
    if (type === 'test:diagnostic' && data.nesting > 0) notes.push(data.message)
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const error = type === 'test:fail' ? data.details.error : null
    // The suite of a file is told by its tests, unless it failed by itself.
    const isFile = data.nesting === 0
    const ofSuite = data.details.type === 'suite'
    if (error !== null && !(ofSuite && failureTypeOf(error) === 'subtestsFailed'))
      failures.push(describeFailure(data.name, error))
    if (typeof data.skip === 'string') skips.push(`${data.name}: ${data.skip}`)
    if (!ofSuite) {
      const skipped = data.skip !== undefined
      counts.tests++
      if (skipped) counts.skipped++
      else if (error === null) counts.passed++
    }
    if (!isFile) continue
    const [cpuNow, assertionsNow] = [cpuSeconds(), counted.assertions]
    const finished = error === null || failureTypeOf(error) === 'subtestsFailed'
    // A file that could not be loaded has no test that could count.
    if (!finished) counts.tests++
    yield {
      counts,
      seconds: data.details.duration_ms / 1000,
      cpuSeconds: cpuNow === null ? null : cpuNow - cpuBefore,
      assertions: assertionsNow === null ? null : assertionsNow - assertionsBefore,
      outcome: error === null ? 'passed' : finished ? 'failed' : 'did not finish',
      failures,
      skips,
      notes,
    }
    ;[failures, skips, notes, counts] = [[], [], [], { ...none }]
    ;[cpuBefore, assertionsBefore] = [cpuNow ?? 0, assertionsNow ?? 0]
  }
}

const failureTypeOf = (error: Error): unknown => (error as { failureType?: unknown }).failureType

const describeFailure = (name: string, error: Error): string => {
  // The runner wraps what was thrown; the wrapper's own stack says nothing.
  const cause = error.cause ?? error
  const text = typeof cause === 'string' ? cause : inspect(cause, { depth: 8 })
  return `  ✗ ${name}\n${text.replace(/^/gm, '    ')}`
}

/** What this process and its ended children had of the processors; null where nobody says. */
const cpuSeconds = (): number | null => {
  const ticksPerSecond = 100
  try {
    // Behind the name, which may hold anything: user and system time of the process and of its children are the 12th to 15th.
    const fields = fs
      .readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond
  } catch {
    return null
  }
}

/** A file whose worker ended under it. */
export const unfinished = (why: string, seconds: number): FileReport => ({
  counts: { tests: 1, passed: 0, skipped: 0 },
  seconds,
  cpuSeconds: null,
  assertions: null,
  outcome: 'did not finish',
  failures: [`  ✗ ${why}`],
  skips: [],
  notes: [],
})

/** `printed`: by the file while it ran; told only where something failed. */
export const reportText = (name: string, report: FileReport, printed: string): string => {
  const { outcome, counts, skips, notes, failures } = report
  const cpu = report.cpuSeconds === null ? '' : `  cpu ${report.cpuSeconds.toFixed(1)} s`
  const took = `${counts.tests} tests  ${report.seconds.toFixed(1)} s${cpu}`
  const lines = [
    `${outcome === 'passed' ? 'ok    ' : 'FAILED'} ${name}  ${outcome === 'did not finish' ? outcome : took}`,
    ...skips.map((skip) => `       skipped: ${skip}`),
    ...notes.map((note) => `       ${note}`),
  ]
  if (outcome !== 'passed') {
    lines.push(...failures)
    if (printed !== '') lines.push(`  --- printed by this file ---\n${printed.trimEnd()}`)
  }
  return `${lines.join('\n')}\n`
}

export const totalText = (reports: readonly FileReport[], seconds: number): string => {
  const sum = (number: (report: FileReport) => number | null): number =>
    reports.reduce((all, report) => all + (number(report) ?? 0), 0)
  const [tests, passed, skipped] = (['tests', 'passed', 'skipped'] as const).map((name) =>
    sum(({ counts }) => counts[name]),
  ) as [number, number, number]
  const counted = reports.some(({ assertions }) => assertions !== null)
  const assertions = counted ? `, ${sum((report) => report.assertions)} assertions` : ''
  const cpu = `${sum((report) => report.cpuSeconds).toFixed(0)} s of the processors`
  return `\n${passed} passed, ${tests - passed - skipped} failed, ${skipped} skipped${assertions} in ${seconds.toFixed(1)} s, ${cpu}\n`
}
