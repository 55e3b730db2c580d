// A line a file; failures in full, with what the file printed; skips with their reason; the sum at the end.

import * as path from 'node:path'
import { inspect } from 'node:util'
import type { TestEvent } from 'node:test/reporters'

type Story = { printed: string[]; failures: string[]; skips: string[] }

export default async function* testReporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const stories = new Map<string, Story>()
  const story = (file: string | undefined): Story => {
    const key = file ?? ''
    const known = stories.get(key) ?? { printed: [], failures: [], skips: [] }
    stories.set(key, known)
    return known
  }
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
      case 'test:summary':
        yield event.data.file === undefined
          ? total(event.data)
          : fileLines(event.data.file, event.data, story(event.data.file))
        break
      default:
        break
    }
  }
  const homeless = stories.get('')
  if (homeless !== undefined && homeless.failures.length > 0) yield `${homeless.failures.join('\n')}\n`
}

type Summary = { counts: { tests: number; passed: number; skipped: number }; duration_ms: number; success: boolean }

const fileLines = (file: string, summary: Summary, story: Story): string => {
  const name = path.relative(process.cwd(), file)
  const head = `${summary.success ? 'ok    ' : 'FAILED'} ${name}  ${summary.counts.tests} tests  ${seconds(summary.duration_ms)}`
  const skips = story.skips.map((skip) => `       skipped: ${skip}`)
  const details = summary.success ? [] : [...story.failures, ...printedBy(story)]
  return [head, ...skips, ...details, ''].join('\n')
}

const printedBy = (story: Story): string[] =>
  story.printed.length === 0 ? [] : [`  --- printed by this file ---\n${story.printed.join('').trimEnd()}`]

const describeFailure = (name: string, error: Error): string => {
  // The runner wraps what was thrown; the wrapper's own stack says nothing.
  const cause = error.cause ?? error
  const text = typeof cause === 'string' ? cause : inspect(cause, { depth: 8 })
  return `  ✗ ${name}\n${text.replace(/^/gm, '    ')}`
}

const total = (summary: Summary): string => {
  const { tests, passed, skipped } = summary.counts
  const failed = tests - passed - skipped
  return `\n${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds(summary.duration_ms)}\n`
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
