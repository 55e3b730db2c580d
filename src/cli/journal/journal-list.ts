import type { Cli } from '#cli/kit/cli.ts'
import { journalLine } from './journal-line.ts'
import { askJournal, countOption, type JournalFilter } from './journal-pages.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'

export const journalList = async (cli: Cli, options: JournalFilter & { readonly last: string }): Promise<void> => {
  const last = countOption(options.last)
  const page = await askJournal(connect(cli, options), options, { last })
  printer(cli, options).answer(page, () => page.entries.map(journalLine))
}
