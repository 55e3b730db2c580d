// A process that runs the test files it is given, one after the other: modules are loaded once for all of them. Each file is a
// suite of its own, so that its hooks hold for its own tests. Started with test-reporter.ts, which sends the reports.

import * as path from 'node:path'
import { after, suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import { fairNowMs } from '../test/process/fair-time.ts'
import { root } from './repository.ts'

export type WorkerJob = {
  /** Relative to the repository. */
  readonly file: string
  /** Tells one run of a file from another; empty where there is one. */
  readonly run: string
  /** Set for this file alone. */
  readonly env: Readonly<Record<string, string>>
  /** In fair time (test/process/fair-time.ts). */
  readonly timeoutMs: number
}

let variables: readonly string[] = []

const runFile = ({ file, run, env, timeoutMs }: WorkerJob): void => {
  for (const name of variables) delete process.env[name]
  Object.assign(process.env, env)
  variables = Object.keys(env)
  const address = pathToFileURL(path.resolve(root, file))
  // A module is evaluated once for each address it is imported by, and a file declares its tests while it is evaluated.
  if (run !== '') address.searchParams.set('run', run)
  const over = new AbortController()
  const deadlineMs = fairNowMs() + timeoutMs
  const looks = setInterval(() => {
    if (fairNowMs() > deadlineMs) over.abort(new Error(`not over after ${timeoutMs / 1000} s`))
  }, 1000).unref()
  suite(file, { signal: over.signal }, async () => {
    after(() => clearInterval(looks))
    await import(address.href)
  })
}

const namesOfOpenHandlesAfterMs = 10_000

// The runner is gone: nothing that was started here outlives it, which `exit` sees to.
const abandoned = (): never => process.exit(1)
process.once('disconnect', abandoned)

process.on('message', (job: WorkerJob | 'end') => {
  if (job !== 'end') return runFile(job)
  process.off('disconnect', abandoned)
  process.disconnect?.()
  const name = (): void => console.error(`still open: ${process.getActiveResourcesInfo().join(', ')}`)
  setTimeout(name, namesOfOpenHandlesAfterMs).unref()
})
