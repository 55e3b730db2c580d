import { alertKinds } from '#domain/alerts/alert-kinds.ts'
import { AlertView } from '#wire/alerts/alert-api.ts'
import { everyAlert } from './alert-list.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { connect, type Ask, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'

export type AlertAckOptions = GlobalOptions & { readonly note?: string; readonly kind?: string }

export const alertAck = async (cli: Cli, options: AlertAckOptions, id: string | undefined): Promise<void> => {
  const { kind } = options
  if ((id === undefined) === (kind === undefined)) throw usageFailure('give either the id of an alert or --kind')
  const plane = connect(cli, options)
  if (id === undefined) return acknowledgeKind(cli, options, plane, kind ?? '')
  const alert = await plane.ask(askOf(options, id))
  printer(cli, options).answer(alert, () => [`alert ${printable(alert.id)} ${alert.state}: ${said(alert)}`])
}

const askOf = ({ note }: AlertAckOptions, id: string): Ask<typeof AlertView> => ({
  method: 'POST',
  path: `/v1/alerts/${encodeURIComponent(id)}/ack`,
  body: note === undefined ? {} : { note },
  answer: AlertView,
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
    const answer = await plane.tryAsk(askOf(options, id))
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
