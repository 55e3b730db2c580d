// Follows a transcript with real processes and fails at the first thing that is not as written.

import assert from 'node:assert/strict'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { childEnvironment } from '../process/child.ts'
import { eventually, within } from '../process/eventually.ts'
import { linesOf, mismatch, missing } from './match-lines.ts'
import type { Step } from './parse-transcript.ts'
import { everything, startShellCommand, type ShellCommand } from './shell-command.ts'

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

export const runTranscript = async (
  t: Scope,
  name: string,
  steps: readonly Step[],
  folder: string,
  limits: TranscriptLimits = usualLimits,
  more: Readonly<Record<string, string>> = {},
): Promise<void> => {
  const before: ShellCommand[] = []
  const shell = {
    wrapper: [],
    folder,
    environment: childEnvironment({ ...environment, ...more }),
    flags: ['-o', 'pipefail'],
  }
  for (const step of steps) {
    const command = startShellCommand(shell, step.command, `${name}:${step.line}: $ ${step.command}`, limits.endMs)
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

const hasSaid = async (command: ShellCommand, step: Step, withinMs: number): Promise<void> => {
  const lacks = (): string | null =>
    missing(step.stdout, linesOf(command.stdout())) ?? missing(step.stderr, linesOf(command.stderr()))
  const isDecided = (): boolean => command.hasEnded() || lacks() === null
  await eventually('what is written', isDecided, { withinMs }).catch(() =>
    assert.fail(`it did not say within ${withinMs} ms: ${lacks()}`),
  )
  assert.equal(lacks(), null, 'it has ended, and did not say')
}

const hasEnded = async (command: ShellCommand, step: Step, withinMs: number): Promise<void> => {
  const code = await within('its end', withinMs, command.ended).catch(() =>
    assert.fail([`${command.where} still runs after ${withinMs} ms:`, ...command.running()].join('\n  ')),
  )
  assert.equal(code, step.exit, 'exit code')
  assert.equal(mismatch(step.stdout, linesOf(command.stdout())), null, 'standard output')
  assert.equal(missing(step.stderr, linesOf(command.stderr())), null, 'standard error')
}
