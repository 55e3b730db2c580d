// A real process that a test started: its output kept, its end awaited, never left behind.

import { spawn, type ChildProcess } from 'node:child_process'
import * as path from 'node:path'
import { cleanup, type Scope } from './cleanup.ts'
import { within } from './eventually.ts'

/** How the runner of the tests says what planes and agents are started with. */
export const commandVariable = 'MUSTER_TEST_COMMAND'

export const repository = path.resolve(import.meta.dirname, '..', '..')
/** The command a stranger uses; it replaces itself by the pinned Node, so its pid is that of the process. */
export const musterCommand = path.join(repository, 'muster')
/** The same sources in fewer files, which start sooner (scripts/test-command.ts); without the runner the command itself. */
export const startedCommand = process.env[commandVariable] ?? musterCommand

/** Where the runner puts the files of a command. As deep as the sources, which look for files of the repository beside them. */
export const programsBeside = (command: string): string => path.join(path.dirname(command), 'lib', 'muster', 'bin')

/** A program of the tests as the runner has put it beside the command; without the runner its source. */
export const testProgram = (source: string): string =>
  startedCommand === musterCommand
    ? source
    : path.join(programsBeside(startedCommand), `${path.basename(source, '.ts')}.js`)

/** Where Node keeps what it has compiled: a process that is killed keeps nothing, but finds what others of the run have kept. */
export const compiledFolder = (withoutRunner: () => string): string =>
  process.env['NODE_COMPILE_CACHE'] ?? withoutRunner()

export type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export type Child = {
  readonly pid: number
  readonly ended: Promise<Ended>
  running(): boolean
  /** What it has printed so far; only the newest part of very much. */
  stdout(): string
  stderr(): string
  /** SIGTERM and a bounded wait; a process that ignores it is killed, and that is an error. */
  stop(): Promise<Ended>
  kill9(): Promise<Ended>
  signal(signal: NodeJS.Signals): void
}

export type ChildOptions = {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  readonly input?: string
  /** The `muster` of another release; left out: that of this repository. */
  readonly command?: string
  /** Put in front of the command, as `strace -D -f -o FILE` (-D keeps the pid that of the command). */
  readonly wrapper?: readonly string[]
}

const keptCharacters = 4_000_000
const stopWithinMs = 15_000

/** What is not the test's business stays out: a developer's own MUSTER_ variables and settings files would change what is tested. */
export const childEnvironment = (env: Readonly<Record<string, string | undefined>>): Record<string, string> => {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(MUSTER_|NODE_TEST|NODE_OPTIONS)/.test(name))
  const noFiles = { MUSTER_CONFIG: 'off', MUSTER_AGENT_CONFIG: 'off' }
  const entries = [...inherited, ...Object.entries({ ...noFiles, ...env })].filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  return Object.fromEntries(entries)
}

/** Should this process end before its tests clean up, no child must outlive it. */
const runningNow = new Set<ChildProcess>()
process.once('exit', () => runningNow.forEach((child) => child.kill('SIGKILL')))

export const startChild = (t: Scope, command: string, args: readonly string[], options: ChildOptions): Child => {
  const [program = command, ...rest] = [...(options.wrapper ?? []), command, ...args]
  const child = spawn(program, rest, {
    cwd: options.cwd ?? repository,
    env: childEnvironment(options.env ?? {}),
    stdio: 'pipe',
  })
  // A command that does not read its input closes it; that is its right.
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const kept = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8')
    child[name].on('data', (text: string) => (kept[name] = (kept[name] + text).slice(-keptCharacters)))
  }
  let running = true
  const ended = new Promise<Ended>((resolve) => {
    child.once('error', (error) => {
      running = false
      kept.stderr += error.message
      resolve({ code: 127, signal: null })
    })
    child.once('close', (code, signal) => {
      running = false
      resolve({ code, signal })
    })
  })
  runningNow.add(child)
  void ended.then(() => runningNow.delete(child))

  const killed = async (): Promise<Ended> => {
    child.kill('SIGKILL')
    return within(`${path.basename(program)} to end after SIGKILL`, stopWithinMs, ended)
  }
  const it: Child = {
    pid: child.pid ?? -1,
    ended,
    running: () => running,
    stdout: () => kept.stdout,
    stderr: () => kept.stderr,
    signal: (signal) => void child.kill(signal),
    kill9: killed,
    async stop() {
      if (!running) return ended
      child.kill('SIGTERM')
      try {
        return await within(`${[program, ...rest].join(' ')} to end after SIGTERM`, stopWithinMs, ended)
      } catch (error) {
        await killed()
        throw error
      }
    },
  }
  cleanup(t, async () => void (await it.stop()))
  return it
}
