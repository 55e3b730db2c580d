import type { Cli } from '#cli/kit/cli.ts'
import { journalLine } from './journal-line.ts'
import { askJournal, countOption, type JournalFilter } from './journal-pages.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { waitForPlane } from '#cli/kit/wait-for-plane.ts'

const waitMs = 25_000

/** Ends by Ctrl-C, or when the plane refuses. A plane that restarts is waited for. */
export const journalFollow = async (cli: Cli, options: JournalFilter & { readonly last: string }): Promise<void> => {
  const last = countOption(options.last)
  const plane = connect(cli, options)
  const print = printer(cli, options)
  let page = await askJournal(plane, options, { last })
  let after = page.next
  for (;;) {
    for (const entry of page.entries) print.item(entry, () => [journalLine(entry)])
    await cli.out.drained()
    const place = after === null ? {} : { after }
    page = await waitForPlane(cli, print.note, () =>
      askJournal(plane, options, { limit: 500, wait_ms: waitMs, ...place }),
    )
    after = page.next ?? after
  }
}
