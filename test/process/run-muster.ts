// One call of the CLI, from start to end.

import { spawn } from 'node:child_process'
import { childEnvironment, repository, startedCommand } from './child.ts'
import { within } from './eventually.ts'

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type RunOptions = {
  /** Of another release. */
  readonly command?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly input?: string
  readonly cwd?: string
  readonly withinMs?: number
}

export const runMuster = async (args: readonly string[], options: RunOptions = {}): Promise<Ran> => {
  const child = spawn(options.command ?? startedCommand, args, {
    cwd: options.cwd ?? repository,
    env: childEnvironment(options.env ?? {}),
    stdio: 'pipe',
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = new Promise<Ran>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === null) reject(new Error(`muster ${args.join(' ')} ended by ${signal}\n${stderr}`))
      else resolve({ code, stdout, stderr })
    })
  })
  return within(`muster ${args.join(' ')} to end`, options.withinMs ?? 60_000, ended).finally(() =>
    child.kill('SIGKILL'),
  )
}
