import type { AnswerOf } from '#wire/core/endpoint.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { type AlertView, alertApi } from '#wire/alerts/alert-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo } from '#cli/kit/duration.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderHeadedTable, type Cell } from '#cli/kit/table.ts'

export type AlertListOptions = GlobalOptions & { readonly all?: boolean }

export const alertList = async (cli: Cli, options: AlertListOptions): Promise<void> => {
  const alerts = await everyAlert(connect(cli, options), options.all === true)
  const nowMs = cli.clock.nowMs()
  const print = printer(cli, options)
  print.answer({ alerts }, (paint) =>
    alerts.length === 0
      ? []
      : renderHeadedTable(
          ['ALERT', 'SEVERITY', 'KIND', 'SUBJECT', 'SINCE', 'STATE', 'REASON'],
          alerts.map((alert) => alertRow(alert, nowMs)),
          paint,
        ),
  )
  if (alerts.some(({ reason }) => reason.length > widestReason)) print.note('whole reasons: muster alert list -o json')
  if (alerts.length > 0) return
  print.note(
    options.all === true ? 'there has never been an alert' : 'nothing needs a person; all: muster alert list --all',
  )
}

export const everyAlert = async (plane: OperatorClient, all: boolean): Promise<AlertView[]> => {
  const alerts: AlertView[] = []
  let after: string | undefined
  do {
    const page: AnswerOf<typeof alertApi.list> = await plane.ask(alertApi.list, { query: { all, after, limit: 1000 } })
    alerts.push(...page.alerts)
    after = page.next ?? undefined
  } while (after !== undefined)
  return alerts
}

/** A table is read at a glance; JSON has the reason whole. */
const widestReason = 400

const alertRow = (alert: AlertView, nowMs: number): Cell[] => [
  alert.id,
  { text: alert.severity, colour: alert.severity === 'critical' ? 'red' : 'yellow' },
  alert.kind,
  alert.subject,
  formatAgo(parseIsoTime(alert.since) ?? nowMs, nowMs),
  stateCell(alert),
  alert.reason.length <= widestReason ? alert.reason : `${alert.reason.slice(0, widestReason - 1)}…`,
]

const stateCell = ({ state, acknowledged_by: by, note }: AlertView): Cell => {
  if (by === null) return { text: state, colour: state === 'open' ? 'plain' : 'dim' }
  const ended = state === 'resolved' ? 'resolved, ' : ''
  return { text: `${ended}acknowledged by ${by}${note === null ? '' : `: ${note}`}`, colour: 'dim' }
}
