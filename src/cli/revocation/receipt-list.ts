import type { AnswerOf } from '#wire/core/endpoint.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { type ReceiptView, receiptApi } from '#wire/revocation/receipt-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo } from '#cli/kit/duration.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderHeadedTable, type Cell } from '#cli/kit/table.ts'

export type ReceiptListOptions = GlobalOptions & { readonly node?: string; readonly open?: boolean }

export const receiptList = async (cli: Cli, options: ReceiptListOptions): Promise<void> => {
  const receipts = await everyReceipt(connect(cli, options), options)
  const nowMs = cli.clock.nowMs()
  const print = printer(cli, options)
  print.answer({ receipts }, (paint) =>
    receipts.length === 0
      ? []
      : renderHeadedTable(
          ['RECEIPT', 'NODE', 'KIND', 'DECIDED', 'EFFECTIVE', 'PEERS', 'REASON'],
          receipts.map((receipt) => receiptRow(receipt, nowMs)),
          paint,
        ),
  )
  if (receipts.length === 0)
    print.note(
      options.open === true ? 'no receipt is open; all: muster receipt list' : 'no identity was taken away yet',
    )
}

const everyReceipt = async (plane: OperatorClient, { node, open }: ReceiptListOptions): Promise<ReceiptView[]> => {
  const receipts: ReceiptView[] = []
  let after: string | undefined
  do {
    const page: AnswerOf<typeof receiptApi.list> = await plane.ask(receiptApi.list, {
      query: { node, open: open === true ? true : undefined, after, limit: 1000 },
    })
    receipts.push(...page.receipts)
    after = page.next ?? undefined
  } while (after !== undefined)
  return receipts
}

const receiptRow = (receipt: ReceiptView, nowMs: number): Cell[] => [
  receipt.id,
  receipt.node,
  receipt.kind,
  formatAgo(parseIsoTime(receipt.decided_at) ?? nowMs, nowMs),
  receipt.effective_at === null
    ? { text: 'not yet', colour: 'red' }
    : { text: `after ${receipt.latency.effective_ms ?? '?'} ms`, colour: 'plain' },
  peersCell(receipt),
  receipt.reason,
]

const peersCell = ({ peers, settled_at }: ReceiptView): Cell => {
  if (peers === null) return { text: '-', colour: 'dim' }
  const dropped = `${peers.expected - peers.stragglers.length} of ${peers.expected}`
  return settled_at === null ? { text: dropped, colour: 'yellow' } : dropped
}
