// `reboot`: remembered before it is asked for. That it was done is seen after the boot, by the kernel's id of it.

import { sha256Hex } from '#platform/bytes.ts'
import { readFileIfAny } from '#platform/files.ts'
import { findProgram, runProgram } from '#platform/run-program.ts'
import { plainEnvironment } from '#platform/service-process.ts'
import { sleep, type Timers } from '#platform/timers.ts'
import { runInTime } from '#platform/user-process.ts'
import { shortDetail, type PreparedTask } from './prepared-task.ts'
import { emptyResult, type TaskRecord } from './task-memory.ts'
import { refuseTask, type HostResult, type TaskRefusal } from './task-verbs.ts'

/**
 * What tells this boot of the machine from others, after what says it: those of two kinds cannot be compared. Null: the system does not
 * say.
 */
export const findBootId = async (runs: 'unit' | 'child'): Promise<string | null> => {
  const id = readFileIfAny('/proc/sys/kernel/random/boot_id')
  if (id !== null) return `kernel/${id.trim()}`
  if (runs === 'child') return null
  // The helper's unit has no such file (ProcSubset=pid). systemd knows when it was started itself: in microseconds since the boot, as its
  // time of the day is written in a time zone that may change.
  const properties = '--property=UserspaceTimestampMonotonic,InitRDTimestampMonotonic,GeneratorsStartTimestampMonotonic'
  const shown = await runProgram('systemctl', ['show', properties], { withinMs: 10_000, input: null })
  return shown.kind === 'done' && /=[1-9]/.test(shown.stdout) ? `systemd/${sha256Hex(shown.stdout)}` : null
}

const askedWithinMs = 60_000
/** For services that take long to end. */
const downWithinMs = 15 * 60_000

/** `command`: null is what the system has for it. */
export const prepareReboot = (
  timers: Pick<Timers, 'after'>,
  runs: 'unit' | 'child',
  command: readonly string[] | null,
): PreparedTask | TaskRefusal => {
  const asked = command ?? usualCommand(runs)
  if (asked === null) return refuseTask('NOT_DONE', 'There is no program here to restart the machine with')
  return {
    kind: 'prepared',
    repeatable: false,
    drop: () => Promise.resolve(),
    run: async (over) => {
      const ran = await runInTime(
        { command: asked, env: plainEnvironment(), cwd: '/', user: null },
        askedWithinMs,
        over,
      )
      // The helper ends with the machine: what became of it is seen after the boot.
      if (over.aborted) return null
      if (ran.timedOut || ran.code !== 0)
        return {
          code: 'PROGRAM_FAILED',
          exit_code: ran.code,
          detail: shortDetail(`The machine is not restarted: ${ran.how}`),
        }
      const ended = new Promise<'over'>((resolve) =>
        over.addEventListener('abort', () => resolve('over'), { once: true }),
      )
      const how = await Promise.race([ended, sleep(timers, downWithinMs, 'background')])
      if (how === 'over') return null
      return { code: 'TIMED_OUT', detail: `The machine was not restarted within ${downWithinMs / 60_000} minutes` }
    },
  }
}

const usualCommand = (runs: 'unit' | 'child'): readonly string[] | null => {
  const systemctl = runs === 'unit' ? findProgram('systemctl') : null
  if (systemctl !== null) return [systemctl, '--no-ask-password', 'reboot']
  const reboot = findProgram('reboot')
  return reboot === null ? null : [reboot]
}

/** Of a reboot that an earlier helper asked for. Pure. */
export const resultOfReboot = ({ boot, begun_ms }: TaskRecord, now: string | null): HostResult => {
  const evidence = { boot_before: boot, boot_after: now }
  const result = { ...emptyResult, started_at_ms: begun_ms, evidence }
  const isComparable = boot !== null && now !== null && kindOf(boot) === kindOf(now)
  return isComparable && boot !== now
    ? result
    : { ...result, code: 'INTERRUPTED', detail: 'The helper was started anew, and the machine was not' }
}

const kindOf = (boot: string): string => boot.slice(0, boot.indexOf('/') + 1)
