// Follows a transcript with real processes and fails at the first thing that is not as written.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
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

const stepWithinMs = 60_000
const endWithinMs = 15_000

type Command = {
  readonly where: string
  readonly ended: Promise<number | null>
  stdout(): string
  stderr(): string
  /** Every process of it, also those of a pipe. */
  stop(): Promise<void>
}

export const runTranscript = async (t: Scope, name: string, steps: readonly Step[], folder: string): Promise<void> => {
  const before: Command[] = []
  for (const step of steps) {
    const command = start(step.command, `${name}:${step.line}: $ ${step.command}`, folder)
    cleanup(t, () => command.stop())
    try {
      await (step.background ? hasSaid(command, step) : hasEnded(command, step))
    } catch (error) {
      // What went wrong often shows in a command that still runs, or no longer does.
      throw new Error([command, ...before.filter(({ stderr }) => stderr() !== '')].map(everything).join('\n'), {
        cause: error,
      })
    }
    if (step.background) before.push(command)
  }
}

const start = (text: string, where: string, folder: string): Command => {
  const said = { stdout: '', stderr: '' }
  const child = spawn('bash', ['-o', 'pipefail', '-c', text], {
    cwd: folder,
    env: childEnvironment(environment),
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that all of it can be ended.
    detached: true,
  })
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (said.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said.stderr += chunk))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    where,
    ended,
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    async stop() {
      signalGroup(child.pid, 'SIGTERM')
      try {
        await within(`${where} to end after SIGTERM`, endWithinMs, ended)
      } catch (error) {
        signalGroup(child.pid, 'SIGKILL')
        throw error
      }
    },
  }
}

const hasSaid = async (command: Command, step: Step): Promise<void> => {
  const lacks = (): string | null =>
    missing(step.stdout, linesOf(command.stdout())) ?? missing(step.stderr, linesOf(command.stderr()))
  await eventually('what is written', () => lacks() === null, { withinMs: stepWithinMs }).catch(() =>
    assert.fail(`it did not say: ${lacks()}`),
  )
}

const hasEnded = async (command: Command, step: Step): Promise<void> => {
  const code = await within(`${command.where} to end`, stepWithinMs, command.ended)
  assert.equal(code, step.exit, 'exit code')
  assert.equal(mismatch(step.stdout, linesOf(command.stdout())), null, 'standard output')
  assert.equal(missing(step.stderr, linesOf(command.stderr())), null, 'standard error')
}

const everything = (command: Command): string => `${command.where}\n${command.stdout()}${command.stderr()}`

const signalGroup = (pid: number | undefined, signal: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
