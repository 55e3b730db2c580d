// The command line: the noun that is called, or all of them where none is.

import { Command, Option } from 'commander'
import type { Cli } from './cli.ts'
import { asCalled } from './failure.ts'
import { exampleLines, exitCodeTable } from './verb.ts'

/** `words`: as they were typed. Without a noun among them, every noun is there: for its help, its completion, its mistakes. */
export const buildProgram = async (cli: Cli, words: readonly string[]): Promise<Command> => {
  const program: Command = new Command('muster')
    .description('A node trust plane: gives machines a short-lived mTLS identity, keeps it alive, takes it away')
    .helpCommand(false)
    .version(`muster ${cli.version}`)
    .addOption(new Option('-o, --output <format>', 'how to answer').choices(['table', 'json']).default('table'))
    .option('--data <folder>', 'data folder of the plane on this machine (MUSTER_DATA; default ./data)')
    .option('--url <url>', 'a plane elsewhere: https://HOST:PORT (MUSTER_URL)')
    .option('--ca <file>', 'root certificates to verify --url against (MUSTER_CA; default: the system)')
    .option('--key-file <file>', 'file with the operator key (MUSTER_KEY_FILE; default admin.key in the data folder)')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput({
      // Help is full of commands: they can be pasted too.
      writeOut: (text) => cli.out.write(asCalled(text, cli.program)),
      writeErr: (text) => cli.err.write(asCalled(text, cli.program)),
      // Rendered once, in run-cli.ts, like every other failure.
      outputError: () => {},
      getOutHelpWidth: () => Math.max(80, cli.out.columns),
      getErrHelpWidth: () => Math.max(80, cli.err.columns),
    })
    .addHelpText('after', () => `\nA first look:\n${exampleLines(firstLook(program)).join('\n')}\n\n${exitCodeTable()}`)
  const called = firstOperand(program, words)
  const named = cli.nouns.filter(({ name }) => name === called)
  for (const { load } of named.length === 0 ? cli.nouns : named) (await load())(program, cli)
  return program
}

/** The first word that is neither an option nor the value of one. */
const firstOperand = (program: Command, words: readonly string[]): string | null => {
  const taking = new Set(program.options.filter(({ required }) => required).flatMap(({ short, long }) => [short, long]))
  for (const [at, word] of words.entries()) {
    const before = words[at - 1]
    if (!word.startsWith('-') && (before === undefined || !taking.has(before))) return word
  }
  return null
}

/** On a node there is only the agent. */
const firstLook = ({ commands }: Command): readonly (readonly [string, string])[] =>
  commands.some((command) => command.name() === 'plane')
    ? [
        ['muster plane', 'start a plane on ./data'],
        ['muster token create --node gpu-001 | muster agent run --state ./n1 --join-file -', 'enrol a first node'],
        ['muster node list', 'see it'],
        ['muster demo --nodes 25', 'or look around in a plane with 25 agents'],
      ]
    : [
        ['muster agent status', 'what the agent of this machine is doing'],
        ['muster agent explain', 'what failed, what was tried, what happens next'],
      ]
