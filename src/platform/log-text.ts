// A line of the log for a person at a terminal: when, how bad, who, what, and the fields.
//
//     2026-11-17 12:03:45 info  agent: channel open  epoch=1 node=gpu-001

import { localTime } from './clock.ts'
import { printableText } from './printable-text.ts'

/** `auto`: text for people on a terminal, and JSON elsewhere. */
export const logFormats = ['auto', 'text', 'json'] as const
export type LogFormat = (typeof logFormats)[number]

type Painted = 'dim' | 'yellow' | 'red' | 'plain'

const levels: Readonly<Record<number, readonly [word: string, colour: Painted]>> = {
  10: ['trace', 'dim'],
  20: ['debug', 'dim'],
  30: ['info', 'plain'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
}
const colours = { dim: 2, yellow: 33, red: 31 } as const
/** From this level on an error is shown with the place where it was thrown. */
const withStack = 50

/** Of lines as pino writes them; of anything else, the text itself. */
export const openLogText = (inColour: boolean): ((line: string) => string) => {
  const paint = (colour: Painted, text: string): string =>
    !inColour || colour === 'plain' || text === '' ? text : `\x1b[${colours[colour]}m${text}\x1b[0m`
  return (line) => {
    const event = parsed(line)
    if (event === null) return `${printableText(line.trimEnd())}\n`
    const { level, time, name, msg, err, ...fields } = event
    const [word, colour] = levels[Number(level)] ?? [String(level), 'plain']
    const { message, stack } = errorOf(err)
    const shown = Object.entries({ ...fields, ...(message === null ? {} : { error: message }) }).flatMap(fieldText)
    const head = `${paint('dim', localTime(Number(time)))} ${paint(colour, word.padEnd(5))} ${printableText(wordsOf(name))}:`
    const said = `${head} ${paint(colour, printableText(wordsOf(msg)))}  ${paint('dim', shown.join(' '))}`.trimEnd()
    const places = Number(level) >= withStack ? stack.map((place) => `    ${printableText(place)}\n`) : []
    return `${said}\n${places.join('')}`
  }
}

const parsed = (line: string): Record<string, unknown> | null => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

const wordsOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/** As pino writes an error: type, message, stack, and more of its own. */
const errorOf = (err: unknown): { readonly message: string | null; readonly stack: readonly string[] } => {
  if (err === undefined) return { message: null, stack: [] }
  const { message, stack } = (err ?? {}) as { message?: unknown; stack?: unknown }
  const places = typeof stack === 'string' ? stack.split('\n').filter((place) => /^\s+at /.test(place)) : []
  return { message: typeof message === 'string' ? message : wordsOf(err), stack: places.map((place) => place.trim()) }
}

/** What is not there is not shown. */
const fieldText = ([name, value]: [string, unknown]): string[] => {
  if (value === null || value === undefined) return []
  const text = printableText(wordsOf(value))
  const isWord = typeof value !== 'string' || /^[^\s"=]+$/.test(text)
  return [`${printableText(name)}=${isWord ? text : JSON.stringify(text)}`]
}
