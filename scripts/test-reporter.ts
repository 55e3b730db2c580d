// A line a file; failures in full, with what the file printed; skips with their reason; the sum at the end.

import * as path from 'node:path'
import { inspect } from 'node:util'
import type { TestEvent } from 'node:test/reporters'

type Story = { failures: string[]; skips: string[]; notes: string[]; printed: string[] }
type Summary = { counts: { tests: number; passed: number; skipped: number }; duration_ms: number; success: boolean }

export type Counts = { readonly tests: number; readonly passed: number; readonly skipped: number }

/** As `node --test` wants it. */
export default async function* testReporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const reports = reportFiles(source, '')
  for (;;) {
    const { done, value } = await reports.next()
    if (done) return void (yield total(value.counts, value.ms))
    yield value
  }
}

/** `run` tells one run of a file from another. Returns the sum. */
export async function* reportFiles(
  source: AsyncIterable<TestEvent>,
  run: string,
): AsyncGenerator<string, { readonly counts: Counts; readonly ms: number; readonly success: boolean }> {
  const stories = new Map<string, Story>()
  // Some events name a file by its full path and some as it was given.
  const story = (file: string | undefined): Story => {
    const key = path.resolve(file ?? '.')
    const known = stories.get(key) ?? { failures: [], skips: [], notes: [], printed: [] }
    stories.set(key, known)
    return known
  }
  const tell = (file: string, head: string, details: 'with details' | 'short'): string => {
    const told = story(file)
    stories.delete(path.resolve(file))
    const lines = [
      head,
      ...told.skips.map((skip) => `       skipped: ${skip}`),
      ...told.notes.map((note) => `       ${note}`),
    ]
    return [...lines, ...(details === 'short' ? [] : [...told.failures, ...printedBy(told)]), ''].join('\n')
  }
  let sum = { counts: { tests: 0, passed: 0, skipped: 0 }, ms: 0, success: false }
  for await (const event of source) {
    switch (event.type) {
      case 'test:stdout':
      case 'test:stderr':
        story(event.data.file).printed.push(event.data.message)
        break
      case 'test:fail':
        story(event.data.file).failures.push(describeFailure(event.data.name, event.data.details.error))
        break
      case 'test:pass':
        if (typeof event.data.skip === 'string')
          story(event.data.file).skips.push(`${event.data.name}: ${event.data.skip}`)
        break
      case 'test:diagnostic':
        if (event.data.file !== undefined) story(event.data.file).notes.push(event.data.message)
        break
      case 'test:summary':
        if (event.data.file === undefined) sum = sumOf(event.data)
        else
          yield tell(
            event.data.file,
            headLine(event.data.file, event.data, run),
            event.data.success ? 'short' : 'with details',
          )
        break
      default:
        break
    }
  }
  // A file that crashed has no summary of its own.
  for (const [file, { failures }] of [...stories]) {
    if (failures.length > 0) yield tell(file, `FAILED ${nameOf(file, run)}  did not finish`, 'with details')
  }
  return sum
}

const nameOf = (file: string, run: string): string => `${path.relative(process.cwd(), file)} ${run}`.trimEnd()

const headLine = (file: string, summary: Summary, run: string): string =>
  `${summary.success ? 'ok    ' : 'FAILED'} ${nameOf(file, run)}  ${summary.counts.tests} tests  ${seconds(summary.duration_ms)}`

const printedBy = (story: Story): string[] =>
  story.printed.length === 0 ? [] : [`  --- printed by this file ---\n${story.printed.join('').trimEnd()}`]

const describeFailure = (name: string, error: Error): string => {
  // The runner wraps what was thrown; the wrapper's own stack says nothing.
  const cause = error.cause ?? error
  const text = typeof cause === 'string' ? cause : inspect(cause, { depth: 8 })
  return `  ✗ ${name}\n${text.replace(/^/gm, '    ')}`
}

const sumOf = ({ counts, duration_ms: ms, success }: Summary) => ({ counts, ms, success })

export const total = ({ tests, passed, skipped }: Counts, ms: number): string =>
  `\n${passed} passed, ${tests - passed - skipped} failed, ${skipped} skipped in ${seconds(ms)}\n`

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
