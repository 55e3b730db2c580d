// `muster alert`: lists alerts and acknowledges them.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { type AlertView, alertApi } from '#wire/alerts/alert-api.ts'
import { formatAgo } from '#cli/kit/duration.ts'
import { connect, everyPage, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import type { Cell } from '#cli/kit/table.ts'
import { alertKinds } from '#domain/alerts/alert-kinds.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { printable } from '#cli/kit/printable.ts'

export const declareAlert = (alert: Command, cli: Cli): void => {
  noun(alert, [
    ['muster alert list', ''],
    ['muster alert ack 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5 --note "on it"', ''],
  ])

  const list = verb(alert, 'list', 'List alerts, oldest first: what is wrong, with whom, since when', [
    ['muster alert list', 'what is not resolved'],
    ['muster alert list --all', 'the last of every kind and subject, resolved ones too'],
    ['muster alert list -o json', 'for scripts'],
  ]).option('--all', 'those that are resolved too')
  performs(cli, lists(list, alertColumns(0)), alertList)

  const ack = verb(alert, 'ack [id]', 'Acknowledge an alert; it resolves when its cause is gone', [
    ['muster alert ack 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'an id as alert list shows it'],
    ['muster alert ack 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5 --note "replacing its disk"', ''],
    ['muster alert ack --kind superseded_by_hardware --note "power was lost"', 'every open alert of a kind'],
  ])
    .option('--kind <kind>', 'instead of an id: every alert of this kind that is open now')
    .option('--note <text>', 'what is being done; goes into the journal')
  performs(cli, ack, alertAck)
}

type AlertListOptions = ListOptions & { readonly all?: boolean }

const alertList = async (cli: Cli, options: AlertListOptions): Promise<void> => {
  const alerts = await everyAlert(connect(cli, options), options.all === true)
  const print = printer(cli, options)
  showList(cli, options, {
    items: alerts,
    columns: alertColumns(cli.clock.nowMs()),
    body: (shown) => ({ alerts: shown }),
  })
  if (alerts.some(({ reason }) => reason.length > widestReason)) print.note('whole reasons: muster alert list -o json')
  if (alerts.length > 0) return
  print.note(options.all === true ? 'no alerts yet' : 'no open alerts; all: muster alert list --all')
}

const everyAlert = (plane: OperatorClient, all: boolean): Promise<AlertView[]> =>
  everyPage(
    (after) => plane.ask(alertApi.list, { query: { all, after, limit: 1000 } }),
    (page) => page.alerts,
  )

/** A table is read at a glance; JSON has the reason whole. */
const widestReason = 400

const alertColumns = (nowMs: number): readonly Column<AlertView>[] => [
  { name: 'alert', cell: ({ id }) => id },
  {
    name: 'severity',
    cell: ({ severity }) => ({ text: severity, colour: severity === 'critical' ? 'red' : 'yellow' }),
  },
  { name: 'kind', cell: ({ kind }) => kind },
  { name: 'subject', cell: ({ subject }) => subject },
  {
    name: 'since',
    cell: ({ since }) => formatAgo(parseIsoTime(since) ?? nowMs, nowMs),
    value: ({ since }) => since,
  },
  { name: 'state', cell: stateCell },
  {
    name: 'reason',
    cell: ({ reason }) => (reason.length <= widestReason ? reason : `${reason.slice(0, widestReason - 1)}…`),
    value: ({ reason }) => reason,
  },
]

const stateCell = ({ state, acknowledged_by: by, note }: AlertView): Cell => {
  if (by === null) return { text: state, colour: state === 'open' ? 'plain' : 'dim' }
  const ended = state === 'resolved' ? 'resolved, ' : ''
  return { text: `${ended}acknowledged by ${by}${note === null ? '' : `: ${note}`}`, colour: 'dim' }
}

type AlertAckOptions = GlobalOptions & { readonly note?: string; readonly kind?: string }

const alertAck = async (cli: Cli, options: AlertAckOptions, id: string | undefined): Promise<void> => {
  const { kind } = options
  if ((id === undefined) === (kind === undefined)) throw usageFailure('give either the id of an alert or --kind')
  const plane = connect(cli, options)
  if (id === undefined) return acknowledgeKind(cli, options, plane, kind ?? '')
  const alert = await plane.ask(alertApi.acknowledge, toAcknowledge(options, id))
  printer(cli, options).answer(alert, () => [`alert ${printable(alert.id)} ${alert.state}: ${said(alert)}`])
}

const toAcknowledge = ({ note }: AlertAckOptions, id: string) => ({
  params: { id },
  body: note === undefined ? {} : { note },
})

const atOnce = 8
const sayEvery = 500

/** One call an alert: each acknowledgement has its own journal entry, and one that is interrupted can be called again. */
const acknowledgeKind = async (
  cli: Cli,
  options: AlertAckOptions,
  plane: OperatorClient,
  kind: string,
): Promise<void> => {
  if (!alertKinds.some((known) => known === kind)) {
    throw usageFailure(`there is no kind of alert ${printable(kind)}; there are: ${alertKinds.join(', ')}`)
  }
  const print = printer(cli, options)
  const open = (await everyAlert(plane, false)).filter((alert) => alert.kind === kind && alert.state === 'open')
  let done = 0
  await inParallel(open, atOnce, async ({ id }) => {
    const answer = await plane.tryAsk(alertApi.acknowledge, toAcknowledge(options, id))
    // It ended, or was raised again as another, since it was listed: the new one is for the next look.
    if (answer instanceof Failure && answer.code === 'ALERT_NOT_FOUND') return
    if (answer instanceof Failure) throw answer
    done++
    if (done % sayEvery === 0 && done < open.length) print.note(`${done} of ${open.length} acknowledged`)
  })
  print.answer({ kind, acknowledged: done }, () => [
    done === 1 ? `1 alert acknowledged: ${kind}` : `${done} alerts acknowledged: ${kind}`,
  ])
}

const said = ({ kind, subject, acknowledged_by: by, state }: AlertView): string =>
  printable(`${kind} of ${subject}${state === 'acknowledged' && by !== null ? `, by ${by}` : ''}`)
