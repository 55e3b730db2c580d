// The health checks of the vCluster, each made at once and then at its interval. A check that does not end is never made twice at
// a time.

import type { AgentCore } from '#agent/core/agent-parts.ts'
import { isoTime } from '#platform/clock.ts'
import { startBounded } from '#platform/bounded-process.ts'
import type { Cancel } from '#platform/timers.ts'
import type { ConfigCheck } from '#wire/fleet/overlay.ts'
import { definitionOfCheck, inPlace, isHelpersCheck, listedNameOfCheck } from '#wire/fleet/overlay-definition.ts'
import type { HelperChecks } from './helped-runner.ts'
import { firstLine, longestLine } from './last-lines.ts'
import { shippedCheck, type CheckResult, type Trees } from './shipped-checks.ts'
import { tidy } from '#agent/core/trouble.ts'

export type CheckState = CheckResult & { readonly name: string; readonly since: string }

export type HealthChecks = {
  /** From now on these: one that is as before keeps its state and its turn. */
  configure(checks: readonly ConfigCheck[], folder: string, env: Readonly<Record<string, string>>): void
  /** In the order of the vCluster. */
  states(): readonly CheckState[]
  close(): void
}

type Life = {
  readonly check: ConfigCheck
  state: CheckState
  isOver: boolean
  cancel: Cancel
  /** Ends a program that is running. */
  kill(): void
}

/** `changed`: a check has another state or says something else. */
export const openHealthChecks = (
  { clock, timers, log }: Pick<AgentCore, 'clock' | 'timers' | 'log'>,
  helperChecks: () => Promise<HelperChecks | null>,
  trees: Trees,
  changed: () => void,
): HealthChecks => {
  let lives: readonly Life[] = []
  let folder = '/'
  let env: Readonly<Record<string, string>> = {}

  const take = (life: Life, { state, line }: CheckResult): void => {
    const before = life.state
    if (life.isOver || (before.state === state && before.line === line)) return
    const since = before.state === state ? before.since : isoTime(clock.nowMs())
    life.state = { name: before.name, state, line, since }
    if (before.state !== state) log.info({ check: before.name, state, line }, 'a health check has another result')
    changed()
  }
  const make = async (life: Life): Promise<void> => {
    const { check } = life
    const [program = '', ...args] = check.command.map((word) => inPlace(word, folder))
    const command = [program, ...args]
    const helper = await helperChecks()
    if (helper !== null && isHelpersCheck(command)) {
      const definition = definitionOfCheck(check)
      const request = { name: listedNameOfCheck(definition), arguments: args, overlay: { definition, folder } }
      return take(life, helped(await helper.run(request)))
    }
    const shipped = shippedCheck(command, trees)
    if (shipped !== null) return take(life, shipped)
    const timeoutMs = check.timeout_ms
    const process = startBounded({ command, env, withinMs: timeoutMs })
    life.kill = process.kill
    const run = await process.result
    take(life, resultOf(run, timeoutMs))
    await process.gone
    life.kill = () => {}
  }
  const turn = async (life: Life): Promise<void> => {
    const startedMs = clock.monotonicMs()
    await make(life).catch((error: unknown) => take(life, notRun(error)))
    if (life.isOver) return
    const spentMs = clock.monotonicMs() - startedMs
    life.cancel = timers.after(Math.max(0, life.check.interval_ms - spentMs), () => void turn(life), 'background')
  }
  const begin = (check: ConfigCheck): Life => {
    const state = { name: check.name, state: 'not_run', line: 'not made yet', since: isoTime(clock.nowMs()) } as const
    const life: Life = { check, state, isOver: false, cancel: () => {}, kill: () => {} }
    return life
  }
  const end = (life: Life): void => {
    life.isOver = true
    life.cancel()
    life.kill()
  }

  return {
    configure: (checks, place, environment) => {
      folder = place
      env = environment
      const before = lives
      lives = checks.map((check) => before.find((life) => isSame(life.check, check)) ?? begin(check))
      for (const life of before) if (!lives.includes(life)) end(life)
      for (const life of lives) if (!before.includes(life)) void turn(life)
    },
    states: () => lives.map(({ state }) => state),
    close: () => {
      for (const life of lives) end(life)
      lives = []
    },
  }
}

const helped = (run: Awaited<ReturnType<HelperChecks['run']>>): CheckResult => {
  if (run.timed_out || run.exit_code === null) return { state: 'failed', line: tidy(run.how, longestLine) }
  return judged(run.exit_code, run.line ?? '')
}

const isSame = (one: ConfigCheck, other: ConfigCheck): boolean => JSON.stringify(one) === JSON.stringify(other)

const resultOf = (run: Awaited<ReturnType<typeof startBounded>['result']>, timeoutMs: number): CheckResult => {
  switch (run.kind) {
    case 'ended':
      return judged(run.code, run.text)
    case 'too-slow':
      return { state: 'failed', line: `did not end within ${timeoutMs} ms` }
    case 'not-started':
      return { state: 'failed', line: tidy(`could not be started: ${run.why}`, longestLine) }
  }
}

const judged = (code: number | null, text: string): CheckResult => {
  const said = firstLine(text)
  if (code === 0) return { state: 'passed', line: said ?? 'passed' }
  return { state: 'failed', line: said ?? (code === null ? 'ended by a signal' : `exit code ${code}`) }
}

/** Who makes it says no: of the machine that says nothing. */
const notRun = (error: unknown): CheckResult => ({
  state: 'not_run',
  line: tidy(error instanceof Error ? error.message : String(error), longestLine),
})
