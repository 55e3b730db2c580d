// What could come next on a command line, one `value<TAB>description` a line. Nothing means: files, says the shell.

import type { Argument, Command, Option } from 'commander'
import type { Cli } from './cli.ts'
import { printable } from './printable.ts'

export type Candidate = readonly [value: string, description: string]

/** Names only a plane knows. */
export type KnownNames = 'nodes' | 'profiles' | 'tokens' | 'keys' | 'alerts' | 'vclusters'

/** `words`: everything behind `muster`; the last one is being typed. */
export const completeWords = async (cli: Cli, program: Command, words: readonly string[]): Promise<string[]> => {
  const typed = words.at(-1) ?? ''
  const place = placeOf(program, words.slice(0, -1))
  const found = candidates(place, typed)
  const all = typeof found === 'string' ? await askPlane(cli, place, found, typed) : found
  return all
    .filter(([value]) => value.startsWith(typed))
    .map(([value, description]) => `${printable(value)}\t${printable(description)}`)
}

export type Place = {
  readonly command: Command
  /** The option whose value is being typed. */
  readonly option: Option | null
  /** How many arguments the command has been given. */
  readonly position: number
  readonly given: Readonly<Record<string, string>>
}

export const placeOf = (program: Command, words: readonly string[]): Place => {
  let command = program
  let option: Option | null = null
  let position = 0
  const given: Record<string, string> = {}
  for (const word of words) {
    if (option !== null) {
      given[option.attributeName()] = word
      option = null
    } else if (word.startsWith('-')) {
      const known = optionsHere(command).find((one) => one.short === word || one.long === word)
      option = known !== undefined && (known.required || known.optional) ? known : null
    } else {
      const child = command.commands.find((one) => one.name() === word)
      if (child === undefined) position++
      else command = child
    }
  }
  return { command, option, position, given }
}

export const candidates = (place: Place, typed: string): readonly Candidate[] | KnownNames => {
  const { command, option } = place
  if (option !== null) {
    // `--from` is a file of names for verbs on nodes, and a profile for profile create.
    if (/<(file|folder)>/.test(option.flags)) return []
    // Columns are named once for both options of a list.
    const named =
      option.long === '--sort' ? (command.options.find(({ long }) => long === '--columns') ?? option) : option
    return ofChoices(named) ?? namesByOption[option.attributeName()] ?? []
  }
  if (typed.startsWith('-')) {
    return optionsHere(command).map((one) => [one.long ?? one.flags, firstSentence(one.description)])
  }
  const children = command.createHelp().visibleCommands(command)
  if (children.length > 0) return children.map((child) => [child.name(), firstSentence(child.description())])
  const taken = command.registeredArguments
  const argument = taken[place.position] ?? taken.filter(({ variadic }) => variadic).at(-1)
  if (argument === undefined) return []
  const nounName = command.parent?.name() ?? ''
  return (
    ofChoices(argument) ??
    (['id', 'ids', 'name', 'names', 'nodes', 'words'].includes(argument.name()) ? (namesByNoun[nounName] ?? []) : [])
  )
}

const namesByOption: Readonly<Record<string, KnownNames>> = {
  node: 'nodes',
  profile: 'profiles',
  from: 'profiles',
  vcluster: 'vclusters',
  to: 'vclusters',
}
const namesByNoun: Readonly<Record<string, KnownNames>> = {
  node: 'nodes',
  profile: 'profiles',
  token: 'tokens',
  key: 'keys',
  alert: 'alerts',
  vcluster: 'vclusters',
}

const optionsHere = (command: Command): Option[] => {
  const help = command.createHelp()
  help.showGlobalOptions = true
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)]
}

const ofChoices = (choosable: Option | Argument): Candidate[] | null =>
  choosable.argChoices === undefined ? null : choosable.argChoices.map((choice) => [choice, ''])

const firstSentence = (text: string): string => text.split(/[;:(]/)[0]?.trim() ?? ''

const askPlane = async (cli: Cli, place: Place, names: KnownNames, typed: string): Promise<readonly Candidate[]> => {
  const { planeNames } = await import('./plane-names.ts')
  try {
    return await planeNames(cli, { output: 'table', ...place.given }, names, typed)
  } catch {
    // A completion that fails says nothing: there is no place on the command line to say it.
    return []
  }
}
