// One entry of the journal as a line for people. What it holds was supplied by nodes too, hence `printable`.

import { isoTime } from '#platform/clock.ts'
import type { Entry } from './journal-pages.ts'
import { printable } from '#cli/kit/printable.ts'

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

export const journalLine = ({ cursor, entry }: Entry): string => {
  const body = entry['body']
  const details = [
    ...Object.entries(entry).filter(([name]) => !placed.includes(name)),
    ...(typeof body === 'object' && body !== null ? Object.entries(body) : []),
  ].filter(([, value]) => value !== null)
  const atMs = entry['atMs']
  return printable(
    [
      textOf(entry['sequence'] ?? cursor),
      typeof atMs === 'number' ? isoTime(atMs) : '-',
      textOf(entry['type']),
      textOf(entry['node']),
      `by ${textOf(entry['actor'])}`,
      ...details.map(([name, value]) => `${name}=${textOf(value)}`),
    ].join('  '),
  )
}

const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return '-'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /\s/.test(text) ? JSON.stringify(text) : text
}
