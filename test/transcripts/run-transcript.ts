// Follows a transcript with real processes and fails at the first thing that is not as written.

import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { childEnvironment } from '../process/child.ts'
import { eventually, within } from '../process/eventually.ts'
import { linesOf, mismatch, missing } from './match-lines.ts'
import type { Step } from './parse-transcript.ts'

/** Free ports, and nothing of the developer's own; otherwise commands run as they stand. */
const environment = {
  MUSTER_NODE_LISTEN: '127.0.0.1:0',
  MUSTER_OPERATOR_LISTEN: '127.0.0.1:0',
  MUSTER_LOG_LEVEL: 'info',
  npm_config_update_notifier: 'false',
}

const stepWithinMs = 60_000

export const runTranscript = async (t: Scope, name: string, steps: readonly Step[], folder: string): Promise<void> => {
  for (const step of steps) await follow(t, `${name}:${step.line}: $ ${step.command}`, step, folder)
}

const follow = async (t: Scope, where: string, step: Step, folder: string): Promise<void> => {
  const said = { stdout: '', stderr: '' }
  const child = spawn('bash', ['-o', 'pipefail', '-c', step.command], {
    cwd: folder,
    env: childEnvironment(environment),
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that every process of a pipe can be ended.
    detached: true,
  })
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  cleanup(t, () => endGroup(child, ended))
  const all = (): string => `\n${where}\n${said.stdout}${said.stderr}`

  if (step.background) {
    await eventually(
      `${where} to say what is written`,
      () => missing(step.stdout, linesOf(said.stdout)) === null && missing(step.stderr, linesOf(said.stderr)) === null,
      { withinMs: stepWithinMs },
    ).catch((error: unknown) => {
      const lacks = missing(step.stdout, linesOf(said.stdout)) ?? missing(step.stderr, linesOf(said.stderr))
      throw new Error(`${all()}\nlacks: ${lacks}`, { cause: error })
    })
    return
  }
  const code = await within(`${where} to end`, stepWithinMs, ended)
  assert.equal(code, step.exit, `exit code of${all()}`)
  assert.equal(mismatch(step.stdout, linesOf(said.stdout)), null, `standard output of${all()}`)
  assert.equal(missing(step.stderr, linesOf(said.stderr)), null, `standard error of${all()}`)
}

const endGroup = async (child: ChildProcess, ended: Promise<unknown>): Promise<void> => {
  const signal = (name: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  signal('SIGTERM')
  try {
    await within('a command of the transcript to end', 15_000, ended)
  } catch (error) {
    signal('SIGKILL')
    throw error
  }
}
