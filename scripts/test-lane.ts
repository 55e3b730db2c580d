// A worker with a test file at a time (test-worker.ts). One that ends under a file is replaced: the file has failed, and those
// behind it are run all the same.

import { fork, type ChildProcess } from 'node:child_process'
import * as path from 'node:path'
import { within } from '../test/process/eventually.ts'
import { root } from './repository.ts'
import { unfinished, type FileReport } from './test-reporter.ts'
import type { WorkerJob } from './test-worker.ts'

export type LaneResult = { readonly report: FileReport; readonly printed: string }

export type Lane = {
  run(job: WorkerJob): Promise<LaneResult>
  /** Null: the worker ended by itself, as it does when tests have closed what they opened; else what kept it. */
  close(): Promise<string | null>
}

export type LaneOptions = {
  readonly env: NodeJS.ProcessEnv
  readonly countAssertions: boolean
}

const beside = (file: string): string => path.join(import.meta.dirname, file)
/** Behind the timeout of the file itself, which a blocked event loop does not notice. */
const blockedMs = 60_000
const endsWithinMs = 30_000

type Worker = { readonly process: ChildProcess; readonly ended: Promise<string>; printed: string }

export const openLane = ({ env, countAssertions }: LaneOptions): Lane => {
  let worker: Worker | null = null

  const start = (): Worker => {
    const child = fork(beside('test-worker.ts'), [], {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [
        '--disable-warning=ExperimentalWarning',
        // What a test makes is soon garbage: seldom collected it is dead by then.
        '--min-semi-space-size=16',
        `--test-reporter=${beside('test-reporter.ts')}`,
        '--test-reporter-destination=stdout',
        ...(countAssertions ? [`--import=${beside('count-assertions.ts')}`] : []),
      ],
    })
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', (code, signal) => resolve(signal === null ? `exit code ${code}` : signal))
    })
    const started: Worker = { process: child, ended, printed: '' }
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (started.printed += text))
    return started
  }

  return {
    async run(job) {
      worker ??= start()
      const it = worker
      it.printed = ''
      const startedMs = performance.now()
      const reported = new Promise<FileReport>((resolve) => it.process.once('message', resolve))
      const died = it.ended.then((how) => `its process ended (${how})`)
      it.process.send(job)
      const outcome = await within(
        'its process to report',
        job.timeoutMs + blockedMs,
        Promise.race([reported, died]),
      ).catch(String)
      if (typeof outcome !== 'string') return { report: outcome, printed: it.printed }
      worker = null
      it.process.kill('SIGKILL')
      await it.ended
      return { report: unfinished(outcome, (performance.now() - startedMs) / 1000), printed: it.printed }
    },
    async close() {
      if (worker === null) return null
      const { process: child, ended } = worker
      child.send('end')
      const how = await within('its end', endsWithinMs, ended).catch(() => null)
      if (how !== null) return null
      child.kill('SIGKILL')
      await ended
      return worker.printed
    },
  }
}
