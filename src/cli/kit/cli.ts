// What every command is given. Only bin/muster.ts and tests make one.

import type { Command } from 'commander'
import type { Clock } from '#platform/clock.ts'
import type { HttpClient, HttpTarget } from '#platform/http-client.ts'
import type { Random } from '#platform/random.ts'
import type { TextInput, TextOutput } from '#platform/standard-streams.ts'
import type { Timers } from '#platform/timers.ts'
import type { Hints } from './as-called.ts'
import type { ExitCode } from './exit-codes.ts'

/** Adds what a noun does to its command: its verbs, or its own options. */
export type DeclareNoun = (command: Command, cli: Cli) => void

/** Only the noun that is called is loaded, so that help and completion stay quick. */
export type Noun = {
  readonly name: string
  /** How the list of nouns shows it, where that is more than the name. */
  readonly usage?: string
  readonly summary: string
  /** For ourselves: in no list. */
  readonly hidden?: true
  readonly load: () => Promise<DeclareNoun>
}

export type Cli = {
  readonly nouns: readonly Noun[]
  /** How this user calls us: `./muster`. */
  readonly program: string
  readonly hints: Hints
  readonly version: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly input: TextInput
  readonly out: TextOutput
  readonly err: TextOutput
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly exit: CommandExit
  openHttp(target: HttpTarget): HttpClient
}

/** How the command ends that does not throw: `ok` unless it says otherwise. One for each command that is run. */
export type CommandExit = {
  /** For a command that has printed its answer and still did not fully succeed. */
  finish(code: ExitCode): void
  code(): ExitCode
}

/** `wide`: a table with every column. `name` and `csv`: of lists only (list.ts). */
export const outputFormats = ['table', 'wide', 'json', 'yaml', 'name', 'csv'] as const

/** Options that every command takes, before or after the verb. */
export type GlobalOptions = {
  readonly output: (typeof outputFormats)[number]
  readonly data?: string
  readonly url?: string
  readonly ca?: string
  readonly keyFile?: string
}
