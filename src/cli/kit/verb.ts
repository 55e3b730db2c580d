// How every command is declared: what it does, examples of it, and what its exit codes mean.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from './cli.ts'
import { exitCodeMeanings, exitCodeNames, exitCodes } from './exit-codes.ts'

export type Example = readonly [command: string, remark: string]

export const noun = (program: Command, name: string, summary: string, examples: readonly Example[]): Command =>
  program
    .command(name)
    .description(summary)
    .helpCommand(false)
    .addHelpText('after', () => `\nExamples:\n${exampleLines(examples).join('\n')}`)

export const verb = (parent: Command, usage: string, summary: string, examples: readonly Example[]): Command =>
  parent
    .command(usage)
    .description(summary)
    .addHelpText('after', () => `\nExamples:\n${exampleLines(examples).join('\n')}\n\n${exitCodeLine}`)

/** What a command does, loaded when it is called. `A` are its arguments as commander parsed them. */
export const performs = <O extends GlobalOptions, A extends readonly unknown[]>(
  cli: Cli,
  command: Command,
  load: () => Promise<(cli: Cli, options: O, ...args: A) => Promise<void>>,
): void => {
  command.action(async (...parsed: unknown[]) => {
    const run = await load()
    await run(cli, command.optsWithGlobals(), ...(parsed.slice(0, -2) as unknown as A))
  })
}

export const exampleLines = (examples: readonly Example[]): string[] => {
  const width = Math.max(...examples.map(([command]) => command.length))
  return examples.map(([command, remark]) => `  ${remark === '' ? command : `${command.padEnd(width)}   # ${remark}`}`)
}

const exitCodeLine =
  'Exit codes: 0 done, 1 refused, 2 usage, 3 not found, 4 not allowed, 69 no plane, 75 try later (all: muster --help)'

export const exitCodeTable = (): string =>
  [
    'Exit codes:',
    ...exitCodeNames.map((name) => `  ${String(exitCodes[name]).padEnd(3)} ${exitCodeMeanings[name]}`),
  ].join('\n')

/** `--plan` and `--apply`, of commands that can do harm (plans/plan-run.ts). */
export const plans = (command: Command): Command =>
  command
    .option('--plan', 'show what it would do, and do nothing')
    .option('--apply <plan>', 'do what that plan has shown, or nothing if something has changed')

/** For options that may be given several times. */
export const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
]
