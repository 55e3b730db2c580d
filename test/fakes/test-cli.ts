// A command line without a terminal: what is written is kept.

import type { Command } from 'commander'
import { allNouns } from '#cli/all-nouns.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { openHints } from '#cli/kit/as-called.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { buildProgram } from '#cli/kit/program.ts'
import { openExit } from '#cli/kit/run-cli.ts'
import { manualClock, type ManualClock } from './manual-clock.ts'
import { manualTimers } from './manual-timers.ts'
import { seededRandom } from './seeded-random.ts'

export type TestCli = {
  readonly cli: Cli
  readonly clock: ManualClock
  stdout(): string
  stderr(): string
}

/** The command line with every noun loaded. */
export const wholeProgram = async (cli: Cli): Promise<Command> => {
  const program = await buildProgram(cli, [])
  for (const [at, { load }] of cli.nouns.entries()) {
    const command = program.commands[at]
    if (command === undefined) throw new Error('a noun has no command')
    const declare = await load()
    declare(command, cli)
  }
  return program
}

export const testCli = (given: {
  env?: Record<string, string>
  input?: string
  nowMs?: number
  openHttp?: Cli['openHttp']
}): TestCli => {
  const clock = manualClock(given.nowMs ?? 1_800_000_000_000)
  const kept = { out: '', err: '' }
  const output = (name: 'out' | 'err') => ({
    isTerminal: false,
    columns: 100,
    write: (text: string) => void (kept[name] += text),
    drained: () => Promise.resolve(),
  })
  const cli: Cli = {
    nouns: allNouns,
    program: './muster',
    hints: openHints('./muster'),
    version: '0.0.0',
    // No settings files of the machine it runs on.
    env: { MUSTER_CONFIG: 'off', MUSTER_AGENT_CONFIG: 'off', ...given.env },
    input: { isTerminal: false, readAll: () => Promise.resolve(given.input ?? '') },
    out: output('out'),
    err: output('err'),
    clock,
    timers: manualTimers(clock),
    random: seededRandom(1),
    exit: openExit(),
    openHttp: given.openHttp ?? openHttpClient,
  }
  return {
    cli,
    clock,
    stdout: () => kept.out,
    stderr: () => kept.err,
  }
}
