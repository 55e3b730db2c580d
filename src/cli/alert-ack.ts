import { AlertView } from '#wire/alert-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { connect } from './operator-client.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'

export const alertAck = async (cli: Cli, options: GlobalOptions & { note?: string }, id: string): Promise<void> => {
  const alert = await connect(cli, options).ask({
    method: 'POST',
    path: `/v1/alerts/${encodeURIComponent(id)}/ack`,
    body: options.note === undefined ? {} : { note: options.note },
    answer: AlertView,
  })
  printer(cli, options).answer(alert, () => [`alert ${printable(alert.id)} ${alert.state}: ${said(alert)}`])
}

const said = ({ kind, subject, acknowledged_by: by, state }: AlertView): string =>
  printable(`${kind} of ${subject}${state === 'acknowledged' && by !== null ? `, by ${by}` : ''}`)
