// One frame of `muster top`: lines that fit the terminal. All functions here are pure.

import { localTime, parseIsoTime } from '#platform/clock.ts'
import type { TerminalSize } from '#platform/terminal.ts'
import { formatSpan } from '#cli/kit/duration.ts'
import type { Colour, Paint } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import type { FleetView, JournalLine } from './fleet-view.ts'

/** How the last look went; null: it went well. */
export type Trouble = { readonly sentence: string; readonly sinceMs: number } | null

export type FrameFacts = {
  readonly view: FleetView
  readonly trouble: Trouble
  /** Behind the domain in the first line. */
  readonly remark: string
  readonly nowMs: number
}

type Piece = readonly [text: string, colour?: Colour]

export const renderFrame = (
  { view, trouble, remark, nowMs }: FrameFacts,
  size: TerminalSize,
  paint: Paint,
): string[] => {
  const fit = (pieces: readonly Piece[]): string => fitted(pieces, size.columns, paint)
  const head = [
    fit([[`muster top  ${view.domain}  ${clockText(nowMs)}  `], [remark, 'dim']]),
    ...(trouble === null
      ? []
      : [
          fit([
            [`${trouble.sentence} What is shown is ${formatSpan(Math.max(0, nowMs - trouble.sinceMs))} old.`, 'red'],
          ]),
        ]),
    '',
    ...[nodesLine(view), connectionLine(view), certificatesLine(view), ratesLine(view), conditionsLine(view)].map(fit),
    '',
  ]
  const room = Math.max(4, size.rows - head.length)
  const alerts = alertLines(view, nowMs, Math.floor(room / 2)).map(fit)
  const entries = Math.max(1, room - alerts.length - 2)
  const journal = view.journal.slice(-entries).toReversed().map(journalLine).map(fit)
  return [...head, ...alerts, '', fit([['journal, newest first', 'dim']]), ...journal].slice(0, size.rows)
}

const label = (text: string): Piece => [text.padEnd(14), 'dim']

/** Those in which a node works come first; other states of a later plane behind them. */
const stateColours: Readonly<Record<string, Colour>> = {
  active: 'green',
  enrolled: 'plain',
  registered: 'plain',
  inactive: 'yellow',
  quarantined: 'red',
  revoked: 'dim',
}

const nodesLine = ({ states }: FleetView): Piece[] => {
  const names = [...Object.keys(stateColours), ...Object.keys(states).filter((name) => !(name in stateColours))]
  const known = names.filter((name) => states[name] !== undefined)
  const total = known.reduce((sum, name) => sum + (name === 'revoked' ? 0 : (states[name] ?? 0)), 0)
  const pieces = known.map((name): Piece => figure(states[name] ?? 0, name, stateColours[name] ?? 'plain'))
  return [label('nodes'), [`${number(total)}   `], ...pieces]
}

const connectionLine = (view: FleetView): Piece[] => {
  const here = (view.replicas ?? 1) > 1 ? ' (to this replica)' : ''
  const isWell = view.standing === null || view.standing === 'serving'
  return [
    label('connected'),
    [`${number(view.connected ?? 0)}${here}   `],
    [`recoverable ${number(view.recoverable ?? 0)}   `],
    [`replicas ${number(view.replicas ?? 1)}   `],
    [`this one ${view.standing ?? 'serving'}${view.leads ? ', leads' : ''}`, isWell ? 'plain' : 'red'],
  ]
}

const certificatesLine = ({ expiring, overdue }: FleetView): Piece[] => [
  label('certificates'),
  ...Object.entries(expiring).map(([within, count]): Piece =>
    figure(count, `end within ${within}`, within === '1h' ? 'yellow' : 'plain'),
  ),
  figure(overdue ?? 0, 'overdue', 'red'),
]

const ratesLine = ({ rates }: FleetView): Piece[] => [
  label('a second'),
  ...Object.entries(rates).map(([name, rate]: [string, number]): Piece => [`${rate.toFixed(1)} ${name}   `]),
]

const conditionsLine = ({ conditions }: FleetView): Piece[] => {
  const raised = Object.entries(conditions)
    .filter(([, count]) => count > 0)
    .toSorted(([, one], [, other]) => other - one)
  return [
    label('conditions'),
    ...(raised.length === 0
      ? [['none', 'green'] as const]
      : raised.map(([name, count]) => figure(count, name, 'yellow'))),
  ]
}

/** Coloured only where there is something to see. */
const figure = (count: number, what: string, colour: Colour): Piece => [
  `${number(count)} ${what}   `,
  count === 0 ? 'dim' : colour,
]

const alertLines = ({ alerts }: FleetView, nowMs: number, most: number): Piece[][] => {
  const { critical = 0, warning = 0 } = alerts.bySeverity
  const total = critical + warning
  const heading: Piece[] = [
    label('alerts'),
    ...(total === 0
      ? [['none open', 'green'] as const]
      : [figure(critical, 'critical', 'red'), figure(warning, 'warning', 'yellow')]),
  ]
  const worst = alerts.first
    .toSorted((one, other) => rank(one.severity) - rank(other.severity))
    .slice(0, Math.max(0, most - 1))
  return [
    heading,
    ...worst.map(({ severity, since, kind, subject, reason }): Piece[] => [
      [`  ${severity.padEnd(9)}`, severity === 'critical' ? 'red' : 'yellow'],
      [`${formatSpan(Math.max(0, nowMs - (parseIsoTime(since) ?? nowMs))).padEnd(8)}`, 'dim'],
      [`${kind}  ${subject}  ${reason}`],
    ]),
  ]
}

const rank = (severity: string): number => (severity === 'critical' ? 0 : 1)

const journalLine = ({ atMs, type, node, actor }: JournalLine): Piece[] => [
  [`  ${clockText(atMs)}  `, 'dim'],
  [`${type.padEnd(26)} ${(node ?? '-').padEnd(16)} `],
  [actor, 'dim'],
]

const number = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ',')

const clockText = (ms: number): string => localTime(ms).slice(-8)

/** Text of the plane has no control characters after this, and a line no more characters than the terminal has columns. */
const fitted = (pieces: readonly Piece[], columns: number, paint: Paint): string => {
  let room = columns
  return pieces
    .map(([text, colour = 'plain']) => {
      const characters = [...printable(text)].slice(0, room)
      room -= characters.length
      return characters.length === 0 ? '' : paint(colour, characters.join(''))
    })
    .join('')
    .trimEnd()
}
