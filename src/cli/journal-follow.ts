import { sleep } from '#platform/timers.ts'
import type { Cli } from './cli.ts'
import { exitCodes } from './exit-codes.ts'
import { Failure } from './failure.ts'
import { journalLine } from './journal-line.ts'
import { askJournal, countOption, type JournalFilter, type JournalPage } from './journal-pages.ts'
import { connect, type OperatorClient } from './operator-client.ts'
import { printer } from './print.ts'

const waitMs = 25_000
const retryMs = 2000

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
    page = await nextPage(cli, plane, options, after, print.note)
    after = page.next ?? after
  }
}

const nextPage = async (
  cli: Cli,
  plane: OperatorClient,
  options: JournalFilter,
  after: string | null,
  note: (text: string) => void,
): Promise<JournalPage> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await askJournal(plane, options, { limit: 500, wait_ms: waitMs, ...(after === null ? {} : { after }) })
    } catch (error) {
      const waits =
        error instanceof Failure && (error.exit === exitCodes.unavailable || error.exit === exitCodes.tryLater)
      if (!waits) throw error
      if (attempt === 1) note(`${error.message} Waiting for it.`)
      await sleep(cli.timers, error.retryAfterMs ?? retryMs)
    }
  }
}
