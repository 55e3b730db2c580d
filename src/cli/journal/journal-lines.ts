// An entry for people. What it holds was supplied by nodes too: it is printed as `printable` has it.

import type { Static } from 'typebox'
import { isoTime } from '#platform/clock.ts'
import type { EntryView } from '#wire/journal/journal-api.ts'
import type { Column } from '#cli/kit/list.ts'
import { printable } from '#cli/kit/printable.ts'
import { formatDuration } from '#wire/core/duration.ts'

export type Entry = Static<typeof EntryView>

/** One entry as a line of `journal follow`. */
export const journalLine = (one: Entry): string => {
  const { entry, cursor } = one
  const words = [wordOf(entry['sequence'] ?? cursor), timeOf(one), wordOf(entry['type']), wordOf(entry['node'])]
  return printable([...words, `by ${wordOf(entry['actor'])}`, ...detailsOf(one)].join('  '))
}

/** In a table a long text is cut; `-o wide` has it whole. */
const widest = 100

export const entryColumns = (whole: boolean): readonly Column<Entry>[] => [
  { name: 'entry', cell: ({ entry, cursor }) => wordOf(entry['sequence'] ?? cursor) },
  { name: 'time', cell: timeOf },
  { name: 'type', cell: ({ entry }) => textOf(entry['type']) },
  { name: 'node', cell: ({ entry }) => textOf(entry['node']) },
  { name: 'actor', cell: ({ entry }) => textOf(entry['actor']) },
  {
    name: 'details',
    cell: (one) => {
      const text = detailsOf(one).join(' ')
      return whole || text.length <= widest ? text : `${text.slice(0, widest - 1)}…`
    },
    value: (one) => detailsOf(one).join(' '),
  },
  { name: 'chain', cell: ({ entry }) => textOf(entry['chain']), wide: true },
]

function timeOf({ at, entry }: Entry): string {
  const { atMs } = entry
  return at ?? (typeof atMs === 'number' ? isoTime(atMs) : '')
}

/** Shown at their own places, or of no use on a line. */
const placed = [
  'schema',
  'domain',
  'operation',
  'chain',
  'sequence',
  'atMs',
  'correlation',
  'type',
  'actor',
  'node',
  'body',
]

const detailsOf = ({ entry }: Entry): string[] => {
  const { body } = entry
  return [
    ...Object.entries(entry).filter(([name]) => !placed.includes(name)),
    ...(typeof body === 'object' && body !== null ? Object.entries(body) : []),
  ]
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${wordOf(name === 'changes' ? asDurations(value) : value)}`)
}

/** `livenessGraceMs: 300000 -> 420000` is shown as it is written in a command: `5m -> 7m`. The entry itself stays as it was hashed. */
const asDurations = (changes: unknown): unknown =>
  Array.isArray(changes)
    ? changes.map((line: unknown) => (typeof line === 'string' ? withDurations(line) : line))
    : changes

const withDurations = (line: string): string => {
  const [, name = '', before = '', after = ''] = /^([\w.]*Ms): (\d+|null) -> (\d+|null)$/.exec(line) ?? []
  const shown = (ms: string) => (ms === 'null' ? ms : formatDuration(Number(ms)))
  return name === '' ? line : `${name}: ${shown(before)} -> ${shown(after)}`
}

/** One word: quoted where it has blanks. */
const wordOf = (value: unknown): string => {
  const text = textOf(value)
  return text === '' ? '-' : /\s/.test(text) ? `"${text.replaceAll('"', "'")}"` : text
}

/** A list of texts as its texts: JSON inside of JSON cannot be read. */
const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return value
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
    ? value.join('; ')
    : JSON.stringify(value)
}
