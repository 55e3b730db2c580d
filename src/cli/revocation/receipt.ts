// `muster receipt`: the proof that identities were taken away.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { type ReceiptView, receiptApi } from '#wire/revocation/receipt-api.ts'
import { formatAgo } from '#cli/kit/duration.ts'
import { connect, everyPage, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import type { Cell } from '#cli/kit/table.ts'
import { askReceipt, awaitReceipt, showReceipt } from './receipt-lines.ts'
import { durationOption } from '#cli/kit/arguments.ts'

export const declareReceipt = (receipt: Command, cli: Cli): void => {
  noun(receipt, [
    ['muster receipt list --open', ''],
    ['muster receipt show 01KA2Q7Z6W3M8X9Y0Z1A2B3C4D', ''],
  ])

  const list = verb(receipt, 'list', 'List receipts, oldest first: whose, how fast, and who is waited for', [
    ['muster receipt list', ''],
    ['muster receipt list --open', 'those that some peer has not confirmed yet'],
    ['muster receipt list --node gpu-001 -o json', 'for scripts'],
  ])
    .option('--node <id>', 'those of one node')
    .option('--open', 'those that are not settled')
  performs(cli, lists(list, receiptColumns(0)), receiptList)

  const show = verb(receipt, 'show <id>', 'Show a receipt: replicas, channels, peers, stragglers, latency', [
    ['muster receipt show 01KA2Q7Z6W3M8X9Y0Z1A2B3C4D', 'an id as receipt list shows it'],
    ['muster receipt show 01KA2Q7Z6W3M8X9Y0Z1A2B3C4D --wait 30s', 'wait until every peer has dropped the key'],
  ]).option('--wait <duration>', 'how long to wait until it is settled')
  performs(cli, show, receiptShow)
}

type ReceiptListOptions = ListOptions & { readonly node?: string; readonly open?: boolean }

const receiptList = async (cli: Cli, options: ReceiptListOptions): Promise<void> => {
  const receipts = await everyReceipt(connect(cli, options), options)
  const columns = receiptColumns(cli.clock.nowMs())
  showList(cli, options, { items: receipts, columns, body: (shown) => ({ receipts: shown }) })
  if (receipts.length === 0)
    printer(cli, options).note(
      options.open === true ? 'no receipt is open; all: muster receipt list' : 'no identity was taken away yet',
    )
}

const everyReceipt = async (plane: OperatorClient, { node, open }: ReceiptListOptions): Promise<ReceiptView[]> => {
  return everyPage(
    (after) =>
      plane.ask(receiptApi.list, {
        query: { node, open: open === true ? true : undefined, after, limit: 1000 },
      }),
    (page) => page.receipts,
  )
}

const receiptColumns = (nowMs: number): readonly Column<ReceiptView>[] => [
  { name: 'receipt', cell: ({ id }) => id },
  { name: 'node', cell: ({ node }) => node },
  { name: 'kind', cell: ({ kind }) => kind },
  {
    name: 'decided',
    cell: ({ decided_at: at }) => formatAgo(parseIsoTime(at) ?? nowMs, nowMs),
    value: ({ decided_at: at }) => at,
  },
  {
    name: 'effective',
    cell: ({ effective_at: at, latency }) =>
      at === null ? { text: 'not yet', colour: 'red' } : `after ${latency.effective_ms ?? '?'} ms`,
    value: ({ effective_at: at }) => at,
  },
  { name: 'peers', cell: peersCell },
  { name: 'reason', cell: ({ reason }) => reason },
]

const peersCell = ({ peers, settled_at }: ReceiptView): Cell => {
  if (peers === null) return ''
  const dropped = `${peers.expected - peers.stragglers.length} of ${peers.expected}`
  return settled_at === null ? { text: dropped, colour: 'yellow' } : dropped
}

const receiptShow = async (cli: Cli, options: GlobalOptions & { wait?: string }, id: string): Promise<void> => {
  const plane = connect(cli, options)
  const waitMs = options.wait === undefined ? 0 : durationOption('--wait', options.wait)
  const receipt = await askReceipt(plane, id, 0)
  showReceipt(cli, printer(cli, options), await awaitReceipt(cli, plane, receipt, waitMs))
}
