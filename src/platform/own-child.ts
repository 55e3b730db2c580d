// This very program once more, in a process of its own.

import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { isSea } from 'node:sea'

export type OwnChild = {
  /** The first line it prints; rejects when it ends without one. */
  readonly firstLine: Promise<string>
  readonly ended: Promise<OwnChildEnd>
  readonly pid: number | null
  running(): boolean
  /** SIGTERM, or the end of its input where that was left open; SIGKILL when it is still there after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** `how`: in words. `code`: null where a signal ended it, or it was never started. */
export type OwnChildEnd = { readonly how: string; readonly code: number | null }

export type HowToStart = {
  readonly env: Readonly<Record<string, string>>
  /** Arrives on its standard input, never in argv. `left-open`: ends when it is to stop, and with this process. */
  readonly input: { readonly text: string } | 'left-open'
  /** What it says on standard error; null: where this process says its own. */
  readonly logFile: string | null
}

export const startOwnChild = (args: readonly string[], how: HowToStart): OwnChild => {
  const log = how.logFile === null ? null : fs.openSync(how.logFile, 'a', 0o600)
  // The executable carries its script and the flags of its Node itself.
  const script = isSea() ? [] : [...process.execArgv, process.argv[1] ?? '']
  const child = spawn(process.execPath, [...script, ...args], {
    env: { ...how.env },
    stdio: ['pipe', 'pipe', log ?? 'inherit'],
  })
  if (log !== null) fs.closeSync(log)
  let running = true
  const ended = new Promise<OwnChildEnd>((resolve) => {
    const end = (how: string, code: number | null): void => {
      running = false
      resolve({ how, code })
    }
    child.once('error', (error) => end(error.message, null))
    child.once('close', (code, signal) => end(code === null ? `by ${signal}` : `with exit code ${code}`, code))
  })
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error('a child without pipes')
  stdin.on('error', () => {})
  const { input } = how
  if (input !== 'left-open') stdin.end(input.text)
  return {
    firstLine: firstLineOf(stdout, ended),
    ended,
    pid: child.pid ?? null,
    running: () => running,
    async stop(graceMs) {
      if (input === 'left-open') stdin.end()
      else child.kill('SIGTERM')
      const killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
      await ended
      clearTimeout(killer)
    },
  }
}

const firstLineOf = (stream: NodeJS.ReadableStream, ended: Promise<unknown>): Promise<string> => {
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
  // A caller that does not wait for the line must not be killed by its absence.
  line.catch(() => {})
  return line
}
