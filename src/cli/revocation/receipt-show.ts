import { askReceipt, awaitReceipt, showReceipt } from './await-receipt.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { durationOption } from '#cli/kit/duration-option.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'

export const receiptShow = async (cli: Cli, options: GlobalOptions & { wait?: string }, id: string): Promise<void> => {
  const plane = connect(cli, options)
  const waitMs = options.wait === undefined ? 0 : durationOption('--wait', options.wait)
  const receipt = await askReceipt(plane, id, 0)
  showReceipt(cli, printer(cli, options), await awaitReceipt(cli, plane, receipt, waitMs))
}
