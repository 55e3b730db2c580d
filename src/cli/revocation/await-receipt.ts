// Waiting for a receipt, with a line of progress where a person looks.

import { mostReceiptWaitMs, type ReceiptView, receiptApi } from '#wire/revocation/receipt-api.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'
import type { Print } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { receiptLines, receiptProgress } from './receipt-lines.ts'

export const usualWait = '10s'

/** How often what is known is shown meanwhile. */
const stepMs = 1000

/** Until it is settled, or the time is over. */
export const awaitReceipt = async (
  cli: Cli,
  plane: OperatorClient,
  receipt: ReceiptView,
  waitMs: number,
): Promise<ReceiptView> => {
  let latest = receipt
  let shown = false
  for (let leftMs = waitMs; leftMs > 0 && latest.settled_at === null; leftMs -= stepMs) {
    if (cli.err.isTerminal) {
      cli.err.write(`\r\x1b[K${printable(`waiting: ${receiptProgress(latest)}`)}`)
      shown = true
    }
    latest = await askReceipt(plane, latest.id, Math.min(stepMs, leftMs))
  }
  if (shown) cli.err.write('\r\x1b[K')
  return latest
}

export const askReceipt = (plane: OperatorClient, id: string, waitMs: number): Promise<ReceiptView> =>
  plane.ask(receiptApi.show, {
    params: { id },
    query: { wait_ms: Math.min(waitMs, mostReceiptWaitMs) },
    about: { ID: id },
  })

/** Printed as it stands; one that is not effective yet is no success. */
export const showReceipt = (cli: Cli, print: Print, receipt: ReceiptView): void => {
  print.answer(receipt, () => receiptLines(receipt))
  const look = `muster receipt show ${receipt.id} --wait 30s`
  if (receipt.effective_at === null) {
    print.note(`not effective yet; what was decided stands, and a plane goes on collecting the proof: ${look}`)
    cli.finish(exitCodes.notEffective)
  } else if (receipt.settled_at === null) print.note(`effective; some peers are still waited for: ${look}`)
}
