// How long an honest node's calls take while strangers attack every listener in every way at once, and while nobody does:
// quiet phases and attacked ones in turns, so that whatever else the machine does is in both.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as path from 'node:path'
import type { Door } from './attackers.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { residentBytes } from './resident-memory.ts'

export type Attacked = {
  /** Milliseconds of each call. */
  readonly quiet: readonly number[]
  readonly attacked: readonly number[]
  readonly bytesBefore: number
  readonly mostBytes: number
}

export type AttackPlan = {
  readonly doors: readonly Door[]
  readonly pid: number
  /** Rejects when the node is not served. */
  readonly call: () => Promise<void>
  readonly phases: number
  readonly secondsEach: number
  /** Connections of each kind of attack at each door. */
  readonly each: number
}

export const callsUnderAttack = async (t: Scope, plan: AttackPlan): Promise<Attacked> => {
  const { doors, pid, phases, each } = plan
  const quiet: number[] = []
  const attacked: number[] = []
  await measure(plan, [])
  const bytesBefore = residentBytes(pid)
  let mostBytes = bytesBefore
  for (let phase = 0; phase < phases; phase++) {
    await measure(plan, quiet)
    const stop = await startAttack(t, doors, { each, idle: true })
    await measure(plan, attacked)
    mostBytes = Math.max(mostBytes, residentBytes(pid))
    await stop()
  }
  return { quiet, attacked, bytesBefore, mostBytes }
}

export const p99 = (samples: readonly number[]): number =>
  samples.toSorted((a, b) => a - b)[Math.floor(samples.length * 0.99)] ?? Number.NaN

const measure = async ({ call, secondsEach }: AttackPlan, samples: number[]): Promise<void> => {
  const until = performance.now() + secondsEach * 1000
  while (performance.now() < until) {
    const beganMs = performance.now()
    await call()
    samples.push(performance.now() - beganMs)
  }
}

export type AttackOptions = {
  /** Connections of each kind of attack at each door. */
  readonly each: number
  /**
   * In the idle class of the scheduler: real attackers sit on the other side of a network, and do not take the cores from plane and
   * node. They get what these leave free. On a busy machine that is nothing.
   */
  readonly idle: boolean
}

/** Returns what ends it. */
export const startAttack = async (
  t: Scope,
  doors: readonly Door[],
  { each, idle }: AttackOptions,
): Promise<() => Promise<void>> => {
  const file = path.join(import.meta.dirname, 'attack-process.ts')
  const attack = [process.execPath, '--disable-warning=ExperimentalWarning', file]
  const [command = '', ...args] = idle ? ['chrt', '--idle', '0', ...attack] : attack
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  cleanup(t, () => void child.kill('SIGKILL'))
  child.stdin.write(`${JSON.stringify({ doors, each })}\n`)
  await once(child.stdout, 'data')
  return async () => {
    const ended = once(child, 'exit')
    child.stdin.end()
    await ended
  }
}
