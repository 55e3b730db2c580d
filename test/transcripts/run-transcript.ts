// Follows a transcript with real processes and fails at the first thing that is not as written.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { processesWith } from '#platform/service-process.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { childEnvironment } from '../process/child.ts'
import { eventually, within } from '../process/eventually.ts'
import { linesOf, mismatch, missing } from './match-lines.ts'
import type { Step } from './parse-transcript.ts'

/** Free ports, and nothing of the developer's own; otherwise commands run as they stand. */
const environment = {
  MUSTER_NODE_LISTEN: '127.0.0.1:0',
  MUSTER_RECOVERY_LISTEN: '127.0.0.1:0',
  MUSTER_OPERATOR_LISTEN: '127.0.0.1:0',
  MUSTER_STATUS_LISTEN: '127.0.0.1:0',
  npm_config_update_notifier: 'false',
}

/** In fair time (fair-time.ts). They are long: their only purpose is that a command that never ends is named. */
export type TranscriptLimits = { readonly stepMs: number; readonly endMs: number }
const usualLimits: TranscriptLimits = { stepMs: 60_000, endMs: 15_000 }

type Command = {
  readonly where: string
  /** Its exit code, once it and everything that has its output has ended. */
  readonly ended: Promise<number | null>
  hasEnded(): boolean
  stdout(): string
  stderr(): string
  /** Command lines of its processes that still run. */
  running(): readonly string[]
  /** Ends every process of it, also those of a pipe and those that have left its group. */
  stop(): Promise<void>
}

export const runTranscript = async (
  t: Scope,
  name: string,
  steps: readonly Step[],
  folder: string,
  limits: TranscriptLimits = usualLimits,
): Promise<void> => {
  const before: Command[] = []
  for (const step of steps) {
    const command = start(step.command, `${name}:${step.line}: $ ${step.command}`, folder, limits.endMs)
    cleanup(t, () => command.stop())
    try {
      await (step.background ? hasSaid : hasEnded)(command, step, limits.stepMs)
    } catch (error) {
      // What went wrong often shows in a command that still runs, or no longer does.
      throw new Error([command, ...before.filter(({ stderr }) => stderr() !== '')].map(everything).join('\n'), {
        cause: error,
      })
    }
    if (step.background) before.push(command)
  }
}

/** Inherited by every process of a command, so that those that have left its group are found. */
const markVariable = 'TRANSCRIPT_COMMAND'

/** Should this process end before its tests clean up, no command must outlive it. */
const notStopped = new Set<(signal: NodeJS.Signals) => void>()
process.once('exit', () => notStopped.forEach((signalAll) => signalAll('SIGKILL')))

const start = (text: string, where: string, folder: string, endWithinMs: number): Command => {
  const said = { stdout: '', stderr: '' }
  const mark = randomUUID()
  const child = spawn('bash', ['-o', 'pipefail', '-c', text], {
    cwd: folder,
    env: childEnvironment({ ...environment, [markVariable]: mark }),
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

const hasSaid = async (command: Command, step: Step, withinMs: number): Promise<void> => {
  const lacks = (): string | null =>
    missing(step.stdout, linesOf(command.stdout())) ?? missing(step.stderr, linesOf(command.stderr()))
  const isDecided = (): boolean => command.hasEnded() || lacks() === null
  await eventually('what is written', isDecided, { withinMs }).catch(() =>
    assert.fail(`it did not say within ${withinMs} ms: ${lacks()}`),
  )
  assert.equal(lacks(), null, 'it has ended, and did not say')
}

const hasEnded = async (command: Command, step: Step, withinMs: number): Promise<void> => {
  const code = await within('its end', withinMs, command.ended).catch(() =>
    assert.fail([`${command.where} still runs after ${withinMs} ms:`, ...command.running()].join('\n  ')),
  )
  assert.equal(code, step.exit, 'exit code')
  assert.equal(mismatch(step.stdout, linesOf(command.stdout())), null, 'standard output')
  assert.equal(missing(step.stderr, linesOf(command.stderr())), null, 'standard error')
}

const everything = (command: Command): string => `${command.where}\n${command.stdout()}${command.stderr()}`

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
