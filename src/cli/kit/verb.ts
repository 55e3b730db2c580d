// How every command is declared: what it does, examples of it, and what its exit codes mean.

import { Option, type Command } from 'commander'
import type { Cli, GlobalOptions } from './cli.ts'
import { exitCodeMeanings, exitCodeNames, exitCodes } from './exit-codes.ts'
import { usageFailure } from './failure.ts'

export type Example = readonly [command: string, remark: string]

/** A noun with verbs below it. Its name and summary: all-nouns.ts. */
export const noun = (command: Command, examples: readonly Example[]): Command =>
  command.helpCommand(false).addHelpText('after', () => `\nExamples:\n${exampleLines(examples).join('\n')}`)

/** A command that does something: a verb, or a noun without verbs. */
export const documented = (command: Command, examples: readonly Example[]): Command =>
  command.addHelpText('after', () => `\nExamples:\n${exampleLines(examples).join('\n')}\n\n${exitCodeLine}`)

export const verb = (parent: Command, usage: string, summary: string, examples: readonly Example[]): Command =>
  documented(parent.command(usage).description(summary), examples)

/** What a command does. `A` are its arguments as commander parsed them. */
type Run<O extends GlobalOptions, A extends readonly unknown[]> = (cli: Cli, options: O, ...args: A) => Promise<void>

export const performs = <O extends GlobalOptions, A extends readonly unknown[]>(
  cli: Cli,
  command: Command,
  run: Run<O, A>,
): void => {
  command.action(async (...parsed: unknown[]) => {
    const options: O = command.optsWithGlobals()
    // Before anything is done: an answer that cannot be printed would hide what became of it.
    if ((options.output === 'name' || options.output === 'csv') && !isList(command)) {
      throw usageFailure(`-o ${options.output} is a format of lists only.`, 'Use -o table, json or yaml here')
    }
    await run(cli, options, ...(parsed.slice(0, -2) as unknown as A))
  })
}

/** Like `performs`, loaded when it is called: for what needs much more than the declarations beside it. */
export const loads = <O extends GlobalOptions, A extends readonly unknown[]>(
  cli: Cli,
  command: Command,
  load: () => Promise<Run<O, A>>,
): void => performs(cli, command, async (used: Cli, options: O, ...args: A) => (await load())(used, options, ...args))

/**
 * Makes a command a list (list.ts): only lists have the formats `name` and `csv`. Help and completion name its columns, where they are
 * loaded with the declaration.
 */
export const lists = (command: Command, columns: readonly { readonly name: string }[] = []): Command => {
  const named = new Option(
    '--columns <names>',
    'show these columns, in this order, with commas between them (all: -o wide)',
  )
  // Not `choices`: it takes several, with commas.
  if (columns.length > 0) named.argChoices = columns.map(({ name }) => name)
  return command
    .option('--sort <column>', 'sort by a column; COLUMN:desc: backwards')
    .addOption(named)
    .option('--no-headers', 'without the line that names the columns')
}

const isList = (command: Command): boolean => command.options.some(({ long }) => long === '--columns')

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

/** `--plan` and `--apply`, of commands that can do harm (plans/plan.ts). */
export const plans = (command: Command): Command =>
  command
    .option('--plan', 'show what it would do, and do nothing')
    .option('--apply <plan>', 'do what that plan has shown, or nothing if something has changed')

/** For options that may be given several times. */
export const collect = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
]
