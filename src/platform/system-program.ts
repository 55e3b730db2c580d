// A program of the system that does one thing and ends: no shell, a clean environment, bounded in time and output.

import { execFile } from 'node:child_process'
import { plainEnvironment } from './service-process.ts'

export type RanProgram = {
  /** Null: it could not be started, or took too long. */
  readonly code: number | null
  readonly stdout: string
  /** What it said, or why it did not run. */
  readonly stderr: string
}

const mostBytes = 1 << 20

/** Never rejects. */
export const runProgram = (program: string, args: readonly string[], withinMs: number): Promise<RanProgram> =>
  new Promise((resolve) => {
    const options = { env: plainEnvironment(), timeout: withinMs, killSignal: 'SIGKILL', maxBuffer: mostBytes } as const
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve({ code: 0, stdout, stderr })
      const code = typeof error.code === 'number' ? error.code : null
      resolve({ code, stdout, stderr: stderr.trim() === '' ? error.message : stderr.trim() })
    })
  })
