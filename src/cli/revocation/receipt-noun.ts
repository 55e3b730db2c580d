import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareReceipt = (program: Command, cli: Cli): void => {
  const receipt = noun(program, 'receipt', 'The proof that an identity was taken away', [
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
  performs(cli, list, async () => (await import('./receipt-list.ts')).receiptList)

  const show = verb(receipt, 'show <id>', 'Show a receipt: replicas, channels, peers, stragglers, latency', [
    ['muster receipt show 01KA2Q7Z6W3M8X9Y0Z1A2B3C4D', 'an id as receipt list shows it'],
    ['muster receipt show 01KA2Q7Z6W3M8X9Y0Z1A2B3C4D --wait 30s', 'wait until every peer has dropped the key'],
  ]).option('--wait <duration>', 'wait for it to be settled, at most so long')
  performs(cli, show, async () => (await import('./receipt-show.ts')).receiptShow)
}
