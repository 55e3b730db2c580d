// A process that runs the test files it is given, one after the other: modules are loaded once for all of them. Each file is a
// suite of its own, so that its hooks hold for its own tests. Started with test-reporter.ts, which sends the reports.

import * as path from 'node:path'
import { suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import { root } from './repository.ts'

export type WorkerJob = {
  /** Relative to the repository. */
  readonly file: string
  /** Tells one run of a file from another; empty where there is one. */
  readonly run: string
  /** Set for this file alone. */
  readonly env: Readonly<Record<string, string>>
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
  suite(file, { timeout: timeoutMs }, async () => void (await import(address.href)))
}

const namesOfOpenHandlesAfterMs = 10_000

process.on('message', (job: WorkerJob | 'end') => {
  if (job !== 'end') return runFile(job)
  process.disconnect?.()
  const name = (): void => console.error(`still open: ${process.getActiveResourcesInfo().join(', ')}`)
  setTimeout(name, namesOfOpenHandlesAfterMs).unref()
})
