import { canonicalJson, type CanonicalValue } from '#plane/store/journal/canonical-json.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { askJournal, type JournalFilter } from './journal-pages.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printableJson } from '#cli/kit/printable.ts'

/** NDJSON whatever `-o` says: this is for programs. `bytes` is the entry exactly as it was hashed. */
export const journalExport = async (cli: Cli, options: JournalFilter & { readonly after?: string }): Promise<void> => {
  const plane = connect(cli, options)
  let after = options.after
  let count = 0
  for (;;) {
    const page = await askJournal(plane, options, { limit: 1000, ...(after === undefined ? {} : { after }) })
    for (const { cursor, hash, entry } of page.entries) {
      cli.out.write(printableJson({ cursor, hash, bytes: canonicalJson(entry as CanonicalValue) }, 0) + '\n')
    }
    await cli.out.drained()
    count += page.entries.length
    if (page.entries.length === 0 || page.next === null || page.next === after) break
    after = page.next
  }
  cli.err.write(`${count} entries\n`)
}
