// This very program once more, in a process of its own.

import { spawn } from 'node:child_process'
import * as fs from 'node:fs'

export type OwnChild = {
  /** The first line it prints; rejects when it ends without one. */
  readonly firstLine: Promise<string>
  readonly ended: Promise<void>
  running(): boolean
  /** SIGTERM; SIGKILL when it is still there after `graceMs`. Resolves when it is gone. */
  stop(graceMs: number): Promise<void>
}

/** `input` arrives on its standard input, never in argv; what it says on standard error goes to `logFile`. */
export const startOwnChild = (
  args: readonly string[],
  how: { readonly env: Readonly<Record<string, string>>; readonly input: string; readonly logFile: string },
): OwnChild => {
  const log = fs.openSync(how.logFile, 'a', 0o600)
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', ...args], {
    env: { ...how.env },
    stdio: ['pipe', 'pipe', log],
  })
  fs.closeSync(log)
  let running = true
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      running = false
      resolve()
    }
    child.once('error', end)
    child.once('close', end)
  })
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error('a child without pipes')
  stdin.on('error', () => {})
  stdin.end(how.input)
  return {
    firstLine: firstLineOf(stdout, ended),
    ended,
    running: () => running,
    async stop(graceMs) {
      child.kill('SIGTERM')
      const killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
      await ended
      clearTimeout(killer)
    },
  }
}

const firstLineOf = (stream: NodeJS.ReadableStream, ended: Promise<void>): Promise<string> => {
  const line = new Promise<string>((resolve, reject) => {
    let text = ''
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => {
      if (text.includes('\n')) return
      text += chunk
      const end = text.indexOf('\n')
      if (end !== -1) resolve(text.slice(0, end))
    })
    void ended.then(() => reject(new Error('it ended before it was ready')))
  })
  // Whoever does not wait for the line must not be killed by its absence.
  line.catch(() => {})
  return line
}
