// A health check that only root can make: whether the kernel has logged errors of late. It fails while there are any, with the
// newest as its line.

import { findProgram } from '#platform/run-program.ts'
import type { ListedCheck } from './agent-toml.ts'
import { runOnce, type ListedRun } from './run-listed.ts'
import { refused, type AnswerOf, type Refused } from './verbs.ts'

/** The helper's own sandbox keeps it from that log: where systemd runs it is read by a unit, from systemd's journal. */
export const checkKernelLog = async (
  { lastMs, withinMs }: ListedCheck & { kind: 'kernel-log' },
  { unit, runs, over }: Pick<ListedRun, 'unit' | 'runs' | 'over'>,
): Promise<AnswerOf<'check.run'> | Refused> => {
  const [program, ...args] = runs === 'unit' ? journalCommand(lastMs) : ringCommand(lastMs)
  const found = program === undefined ? null : findProgram(program)
  if (found === null) return refused('PROGRAM_FAILED', `There is no ${program} here to read the kernel's log with`)
  const command = [found, ...args]
  const ran = await runOnce({ unit, command, user: null, withinMs, runs, over })
  const line = ran.lines.at(-1) ?? null
  if (ran.timedOut || ran.code !== 0) return { exit_code: ran.code, timed_out: ran.timedOut, line, how: ran.how }
  return { exit_code: line === null ? 0 : 1, timed_out: false, line, how: line === null ? 'no errors' : 'errors' }
}

const secondsOf = (ms: number): number => Math.ceil(ms / 1000)

const journalCommand = (lastMs: number): readonly string[] => [
  'journalctl',
  '--dmesg',
  '--priority=err',
  '--quiet',
  '--no-pager',
  '--output=cat',
  '--lines=1',
  `--since=-${secondsOf(lastMs)}s`,
]

const ringCommand = (lastMs: number): readonly string[] => [
  'dmesg',
  '--kernel',
  '--level=emerg,alert,crit,err',
  '--notime',
  `--since=-${secondsOf(lastMs)}s`,
]
