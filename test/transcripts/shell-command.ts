// A command of a transcript: a shell with everything it starts, also what has left its group, followed until all of it has ended.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { processesWith } from '#platform/service-process.ts'
import { eventually, within } from '../process/eventually.ts'

export type ShellCommand = {
  readonly where: string
  /** Its exit code, once it and everything that has its output has ended. */
  readonly ended: Promise<number | null>
  hasEnded(): boolean
  stdout(): string
  stderr(): string
  /** Command lines of its processes that still run. */
  running(): readonly string[]
  /** Ctrl-C in its terminal. */
  interrupt(): void
  /** Ends every process of it, also those of a pipe and those that have left its group. */
  stop(): Promise<void>
}

/** Where commands run, and with what. */
export type Shell = {
  /** Put in front of the shell, as `nsenter`. */
  readonly wrapper: readonly string[]
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
  /** Of bash. */
  readonly flags: readonly string[]
}

/** Inherited by every process of a command, so that those that have left its group are found. */
const markVariable = 'TRANSCRIPT_COMMAND'

/** Should this process end before its tests clean up, no command must outlive it. */
const notStopped = new Set<(signal: NodeJS.Signals) => void>()
process.once('exit', () => notStopped.forEach((signalAll) => signalAll('SIGKILL')))

export const startShellCommand = (shell: Shell, text: string, where: string, endWithinMs: number): ShellCommand => {
  const said = { stdout: '', stderr: '' }
  const mark = randomUUID()
  const [program, ...args] = [...shell.wrapper, 'bash', ...shell.flags, '-c', text]
  const child = spawn(program, args, {
    cwd: shell.folder,
    env: { ...shell.environment, [markVariable]: mark },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that all of it can be ended.
    detached: true,
  })
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (said.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said.stderr += chunk))
  let isOver = false
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve)).finally(() => (isOver = true))
  const marked = () => processesWith(`${markVariable}=${mark}`)
  const processes = (): readonly number[] => marked().map(({ mark: { pid } }) => pid)
  const signalAll = (signal: NodeJS.Signals): void => {
    // Of a command that has ended the number may be that of another group by now.
    const group = child.exitCode === null && child.signalCode === null ? child.pid : undefined
    if (group !== undefined) signalIfAny(-group, signal)
    // Each process once: a second signal ends a plane at once, and a stop that hangs would not be found.
    for (const one of marked()) if (group === undefined || one.group !== group) signalIfAny(one.mark.pid, signal)
  }
  notStopped.add(signalAll)
  return {
    where,
    ended,
    hasEnded: () => isOver,
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    running: () => processes().map(commandLineOf),
    interrupt: () => signalAll('SIGINT'),
    async stop() {
      signalAll('SIGTERM')
      try {
        await within(`${where} to end after SIGTERM`, endWithinMs, ended)
        await eventually(`every process of ${where} to end`, () => processes().length === 0, { withinMs: endWithinMs })
      } catch (error) {
        signalAll('SIGKILL')
        throw error
      } finally {
        // A process that is not found and has its output must not keep the test running.
        child.stdout.destroy()
        child.stderr.destroy()
        notStopped.delete(signalAll)
      }
    },
  }
}

/** What it has said, under its line. */
export const everything = (command: ShellCommand): string => `${command.where}\n${command.stdout()}${command.stderr()}`

const commandLineOf = (pid: number): string => {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return `process ${pid}, which has just ended`
  }
}

/** `pid`: negative for a group. */
const signalIfAny = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
