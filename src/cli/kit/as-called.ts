// A hint is a command to paste: called as this user calls us, with the options that say which plane or which agent is meant.

import { shellWord } from './printable.ts'

/**
 * Of the command that gives the hint. What an environment variable says is not repeated: it is set as well where the hint is pasted.
 */
export type Given = {
  /** `--data`, `--url`, `--ca` and `--key-file`; none of a command about the agent. */
  readonly plane: readonly (readonly [option: string, value: string])[]
  /** `--state` of a command about the agent of this machine. */
  readonly state: string | null
}

const nothingGiven: Given = { plane: [], state: null }

/** One for each command that is run. */
export type Hints = {
  /** Commands in a text as they can be pasted. */
  readonly asCalled: (text: string) => string
  /** Of the command that is run; called when there is a hint to give. */
  about(given: () => Given): void
}

/** `nouns`: those that this program has, where it is not the whole command line. */
export const openHints = (program: string, nouns: readonly string[] | null = null): Hints => {
  let given = (): Given => nothingGiven
  return {
    asCalled: (text) => withPlace(asCalled(text, program, given()), nouns),
    about: (asked) => void (given = asked),
  }
}

// Not a file or a folder of that name, nor the value of an option, such as an audience. A command that says itself which plane or agent it is for is left as it is, and so is one for
// another machine.
const any = /(?<![./\w]|--[a-z-]+ )muster(?= [a-z-])/g
const ofPlane =
  /(?<![./\w]|--[a-z-]+ |\b(?:there|machine|plane|side): )muster(?= (?!agent |version\b|completion\b|demo\b)(?<noun>[a-z-]+))(?![^;,()]* --(?:data|url|help)\b)/g
const ofAgent =
  /(?<![./\w])muster agent (?:run|status|explain|renew|repair|cert (?:list|show|path))\b(?![^;,()]* --(?:state|help)\b)/g

export const asCalled = (text: string, program: string, { plane, state }: Given = nothingGiven): string =>
  text
    .replace(ofAgent, (command) => (state === null ? command : `${command} --state ${shellWord(state)}`))
    .replace(ofPlane, (name, noun: string) => [name, ...optionsFor(noun, plane)].join(' '))
    .replace(any, () => program)

const command = /(?<before>: )?(?<![./\w])muster (?<noun>[a-z][a-z-]*) [a-z]/g

/** The first command that a program for nodes does not have is said to be run on the plane; those behind it are, too. */
const withPlace = (text: string, nouns: readonly string[] | null): string => {
  if (nouns === null || /\bon the (machine of the )?plane\b/.test(text)) return text
  const first = [...text.matchAll(command)].find(({ groups }) => !nouns.includes(groups?.['noun'] ?? ''))
  if (first === undefined) return text
  const [place, at] = first.groups?.['before'] === undefined ? ['on the plane: ', 0] : [' (on the plane): ', 2]
  return text.slice(0, first.index) + place + text.slice(first.index + at)
}

/** A plane is started on a folder, whatever it is reached by. */
const optionsFor = (noun: string, plane: Given['plane']): readonly string[] =>
  plane
    .filter(([option]) => noun !== 'plane' || option === '--data')
    .map(([option, value]) => `${option} ${shellWord(value)}`)
