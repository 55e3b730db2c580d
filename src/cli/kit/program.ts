// The command line: every noun by its name, and what is below the one that is called.

import { Command, Help, Option } from 'commander'
import { asCalled } from './as-called.ts'
import { outputFormats, type Cli } from './cli.ts'
import { exampleLines, exitCodeTable } from './verb.ts'

/** `words`: as they were typed. */
export const buildProgram = async (cli: Cli, words: readonly string[]): Promise<Command> => {
  const help = new Help()
  const usageOf = (command: Command): string | null =>
    cli.nouns.find(({ name }) => name === command.name())?.usage ?? null
  const program: Command = new Command('muster')
    .description('A node trust plane: gives machines a short-lived mTLS identity, keeps it alive, takes it away')
    .helpCommand(false)
    .version(`muster ${cli.version}`)
    .addOption(new Option('-o, --output <format>', 'how to answer').choices(outputFormats).default('table'))
    .option(
      '--data <folder>',
      'data folder of the plane on this machine (MUSTER_DATA; default: that of /etc/muster/plane.toml, else ./data)',
    )
    .option('--url <url>', 'a plane elsewhere: https://HOST:PORT (MUSTER_URL)')
    .option('--ca <file>', 'root certificates to verify --url against (MUSTER_CA; default: the system)')
    .option('--key-file <file>', 'file with the operator key (MUSTER_KEY_FILE; default admin.key in the data folder)')
    .configureHelp({
      showGlobalOptions: true,
      subcommandTerm: (command) =>
        (command.parent === program ? usageOf(command) : null) ?? help.subcommandTerm(command),
    })
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
  for (const { name, summary, hidden = false } of nounsFor(cli, words)) {
    program.command(name, { hidden }).description(summary)
  }
  const noun = cli.nouns.find(({ name }) => name === called)
  const command = program.commands.find((one) => one.name() === called)
  if (noun !== undefined && command !== undefined) (await noun.load())(command, cli)
  return program
}

/** All of them, unless a noun comes first: then nothing but that one is looked at, and to declare the others takes milliseconds. */
const nounsFor = ({ nouns }: Cli, [first]: readonly string[]): Cli['nouns'] => {
  const called = nouns.find(({ name }) => name === first)
  return called === undefined ? nouns : [called]
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
        ['muster token create --node gpu-001 | muster agent run --state ./n1 --join-file -', 'enroll a first node'],
        ['muster node list', 'see it'],
        ['muster demo --nodes 25', 'or look around in a plane with 25 agents'],
      ]
    : [
        ['muster agent status', 'what the agent of this machine is doing'],
        ['muster agent explain', 'what failed, what was tried, what happens next'],
      ]
