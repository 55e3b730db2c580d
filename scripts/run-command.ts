// One child process, its output kept whole and its time measured.

import { spawn } from 'node:child_process'

export type Finished = { readonly code: number; readonly output: string; readonly seconds: number }

export const runCommand = (command: string, args: readonly string[], cwd: string): Promise<Finished> =>
  new Promise((resolve) => {
    const startedMs = performance.now()
    const chunks: Buffer[] = []
    // What is quoted in a log is plain text; some tools colour it all the same when they see CI.
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined }
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const finish = (code: number): void =>
      resolve({ code, output: Buffer.concat(chunks).toString(), seconds: (performance.now() - startedMs) / 1000 })
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`))
      finish(127)
    })
    child.on('close', (code) => finish(code ?? 1))
  })
