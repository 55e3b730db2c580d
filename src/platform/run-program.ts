// Other programs of the system: found on the PATH, given words and never a shell, bounded in time and in what they may say.

import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'

export type Ran =
  | { readonly kind: 'done'; readonly stdout: string }
  /** `why`: what it said last, or how it ended. */
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'not-installed' }

export type RunOptions = {
  readonly withinMs: number
  /** Descriptor of what it finds at /dev/stdin; null: nothing. A pipe of Node's is a socket, and cannot be opened by that name. */
  readonly input: number | null
}

const longestOutput = 1 << 20
const longestWhy = 200
const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Little of our own environment: some programs read their orders from it. */
const environment = (): Record<string, string> => ({ PATH: searched().join(':'), LC_ALL: 'C' })

/** The PATH of a user other than root has no sbin. */
const searched = (): string[] => [...new Set([...(process.env['PATH'] ?? '').split(':').filter(Boolean), ...folders])]

export const findProgram = (program: string): string | null =>
  searched()
    .map((folder) => path.join(folder, program))
    .find((file) => path.isAbsolute(file) && isExecutable(file)) ?? null

const isExecutable = (file: string): boolean => {
  try {
    fs.accessSync(file, fs.constants.X_OK)
    return fs.statSync(file).isFile()
  } catch {
    return false
  }
}

export const runProgram = (program: string, args: readonly string[], { withinMs, input }: RunOptions): Promise<Ran> =>
  new Promise((resolve) => {
    const found = findProgram(program)
    if (found === null) return resolve({ kind: 'not-installed' })
    const child = spawn(found, args, {
      env: environment(),
      stdio: [input ?? 'ignore', 'pipe', 'pipe'],
      timeout: withinMs,
      killSignal: 'SIGKILL',
    })
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        if (said[name].length + text.length > longestOutput) child.kill('SIGKILL')
        else said[name] += text
      })
    }
    child.once('error', (error) => resolve({ kind: 'failed', why: error.message.slice(0, longestWhy) }))
    child.once('close', (code, signal) => {
      if (code === 0) return resolve({ kind: 'done', stdout: said.stdout })
      resolve({ kind: 'failed', why: lastWords(said.stderr) ?? endingOf(code, signal) })
    })
  })

const lastWords = (text: string): string | null =>
  text
    .split('\n')
    .map((line) => line.trim())
    .findLast((line) => line !== '')
    ?.slice(0, longestWhy) ?? null

const endingOf = (code: number | null, signal: NodeJS.Signals | null): string =>
  code === null ? `ended by ${signal}` : `exit code ${code}`

/** A program that stays for as long as we do. */
export type Resident = {
  running(): boolean
  /** Resolves to how, in words. */
  readonly ended: Promise<string>
  /** SIGTERM; SIGKILL when it is still there after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** Null: not installed. `env`: besides a PATH. */
export const startResident = (
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Resident | null => {
  const found = findProgram(program)
  if (found === null) return null
  const child = spawn(found, args, { env: { ...environment(), ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-4096)))
  let running = true
  const ended = new Promise<string>((resolve) => {
    const end = (how: string): void => {
      running = false
      resolve(how)
    }
    child.once('error', (error) => end(error.message))
    child.once('close', (code, signal) => end(lastWords(stderr) ?? endingOf(code, signal)))
  })
  return {
    running: () => running,
    ended,
    async stop(graceMs) {
      if (!running) return
      child.kill('SIGTERM')
      const killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
      await ended
      clearTimeout(killer)
    },
  }
}
