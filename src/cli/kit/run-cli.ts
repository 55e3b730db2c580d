// Runs one command line and says how it went.

import { CommanderError, type Command } from 'commander'
import { redactSecrets } from '#platform/secret-shapes.ts'
import type { Given } from './as-called.ts'
import type { Cli, CommandExit, GlobalOptions } from './cli.ts'
import { completeWordsCommand } from './completion.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import { Failure, failureBody, renderFailure, usageFailure } from './failure.ts'
import { printableJson } from './printable.ts'
import { buildProgram } from './program.ts'

export const openExit = (): CommandExit => {
  let exit: ExitCode = exitCodes.ok
  return { finish: (code) => void (exit = code), code: () => exit }
}

export const runCli = async (args: readonly string[], cli: Cli): Promise<ExitCode> => {
  const [first, ...words] = args
  if (first === completeWordsCommand) return answerShell(cli, words)
  const program = await buildProgram(cli, args)
  cli.hints.about(() => givenTo(program, args))
  try {
    await program.parseAsync([...args], { from: 'user' })
    return cli.exit.code()
  } catch (error) {
    const help = ['muster', ...commandsIn(program, args).map((command) => command.name()), '--help'].join(' ')
    const failure = error instanceof CommanderError ? ofCommander(error, help) : asFailure(error, help)
    if (failure === null) return exitCodes.ok
    const { output } = program.opts<Partial<GlobalOptions>>()
    // JSON is YAML too.
    const structured = output === 'json' || output === 'yaml'
    const lines = structured ? [json(failure, cli)] : renderFailure(failure, cli.hints)
    // What was typed is repeated, and what a command prints ends up in logs.
    cli.err.write(lines.map((line) => redactSecrets(line) + '\n').join(''))
    return failure.exit
  }
}

/** What completion scripts call with the words typed so far. These may be anything, so commander never sees them. */
const answerShell = async (cli: Cli, words: readonly string[]): Promise<ExitCode> => {
  const { completeWords } = await import('./complete-words.ts')
  // The last word is still being typed: it names no noun yet.
  const program = await buildProgram(cli, words.slice(0, -1))
  for (const line of await completeWords(cli, program, words)) cli.out.write(line + '\n')
  return exitCodes.ok
}

const json = (failure: Failure, cli: Cli): string => printableJson(failureBody(failure, cli.hints), 0)

/** Null: help or version was asked for and has been printed. */
const ofCommander = (error: CommanderError, help: string): Failure | null => {
  if (error.exitCode === 0) return null
  // Commander has printed the help where a verb is missing; repeating it as an error would say nothing.
  const sentence =
    error.code === 'commander.help'
      ? 'A command is missing.'
      : error.message.replace(/^error: /, '').replaceAll('\n', ' ')
  return usageFailure(sentence, help)
}

/** The commands that the command line names, from the noun on: `node`, `list`. */
const commandsIn = (program: Command, args: readonly string[]): Command[] => {
  const named: Command[] = []
  for (const arg of args) {
    const child = (named.at(-1) ?? program).commands.find((command) => command.name() === arg)
    if (child !== undefined) named.push(child)
  }
  return named
}

const givenTo = (program: Command, args: readonly string[]): Given => {
  const named = commandsIn(program, args)
  if (named[0]?.name() === 'agent') {
    const { state }: { state?: string } = named.at(-1)?.opts() ?? {}
    // The state folder of the helper is another.
    return { plane: [], state: named[1]?.name() === 'helper' ? null : (state ?? null) }
  }
  const { data, url, ca, keyFile } = program.opts<Partial<GlobalOptions>>()
  const plane = { '--data': data, '--url': url, '--ca': ca, '--key-file': keyFile }
  return {
    plane: Object.entries(plane).flatMap(([option, value]) => (value === undefined ? [] : [[option, value] as const])),
    state: null,
  }
}

const asFailure = (error: unknown, help: string): Failure => {
  if (error instanceof Failure) {
    return error.exit === exitCodes.usage && error.next === null ? usageFailure(error.message, help) : error
  }
  return new Failure({
    exit: exitCodes.fault,
    code: 'FAULT',
    sentence: 'Something broke that should not.',
    detail: error instanceof Error ? error.message : String(error),
    next: 'Try again; if it stays, report it with the line above and what this prints: muster version',
  })
}
