// `muster journal`: reading, following, exporting and verifying it.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { connect, waitForPlane } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { canonicalJson, type CanonicalValue } from '#plane/store/journal/canonical-json.ts'
import { printableJson, printable } from '#cli/kit/printable.ts'
import { journalApi } from '#wire/journal/journal-api.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { askJournal, countOption, type JournalFilter } from './ask-journal.ts'
import { entryColumns, journalLine } from './journal-lines.ts'
import { journalList } from './journal-list.ts'
import { counted } from '#domain/core/in-words.ts'

export const declareJournal = (journal: Command, cli: Cli): void => {
  noun(journal, [
    ['muster journal follow', ''],
    ['muster journal verify', ''],
  ])

  const list = filters(
    verb(journal, 'list', 'List the newest entries, oldest first', [
      ['muster journal list', ''],
      ['muster journal list --node gpu-001 --last 200', 'the history of one node'],
      ['muster journal list --type refused', ''],
      ['muster journal list --since 2h --actor alice', 'what alice did'],
      ['muster journal list --since 8d --correlation "$CORRELATION"', 'the story of a task or a recovery'],
      ['muster journal list --since 2026-01-05T08:00:00Z --until 2026-01-05T09:00:00Z', ''],
    ]),
  )
    .option('--last <count>', 'how many (at most 1000)', '50')
    .option('--since <time>', 'from then on: 2h, 3d, or a time such as 2026-01-05T08:00:00Z')
    .option('--until <time>', 'up to then (without --since: of the day before)')
    .option(
      '--actor <name>',
      'only what this operator, node or part of the plane did (without --since: of the last day)',
    )
    .option('--correlation <id>', 'only what belongs to this story (without --since: of the last day)')
  performs(cli, lists(list, entryColumns(false)), journalList)

  const follow = filters(
    verb(journal, 'follow', 'Follow entries as they happen, until Ctrl-C', [
      ['muster journal follow', ''],
      ['muster journal follow -o json', 'one JSON object a line'],
    ]),
  ).option('--last <count>', 'number of older entries to begin with', '10')
  performs(cli, follow, journalFollow)

  const verify = verb(
    journal,
    'verify',
    'Recompute every hash, check every signed head, and compare rows with their entries',
    [['muster journal verify', 'chain intact, N entries']],
  )
  performs(cli, verify, journalVerify)

  const exported = filters(
    verb(journal, 'export', 'Export every entry with its hash, one JSON object a line', [
      ['muster journal export > journal.ndjson', ''],
      ['muster journal export --after "$LAST_CURSOR" >> journal.ndjson', 'what is new since then'],
    ]),
  ).option('--after <cursor>', 'only what comes behind this cursor')
  performs(cli, exported, journalExport)
}

const filters = (command: Command): Command =>
  command.option('--node <id>', 'only entries about this node').option('--type <type>', 'only entries of this type')

const waitMs = 25_000

/** Ends by Ctrl-C, or when the plane refuses. A plane that restarts is waited for. */
const journalFollow = async (cli: Cli, options: JournalFilter & { readonly last: string }): Promise<void> => {
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

/** Always NDJSON, also without `-o`: this is for programs. `bytes` is the entry exactly as it was hashed. */
const journalExport = async (cli: Cli, options: JournalFilter & { readonly after?: string }): Promise<void> => {
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

const differ = (rows: number): string => (rows === 1 ? '1 row differs' : `${rows} rows differ`)

/** A long journal takes its time. */
const timeoutMs = 30 * 60_000

const journalVerify = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(journalApi.verify, { timeoutMs })
  const print = printer(cli, options)
  const { broken } = answer
  if (answer.intact && broken === null) {
    const { heads, entries } = answer
    const several = heads.length > 1
    const chains = several ? `${heads.length} chains` : 'chain'
    print.answer(answer, () => [`${chains} intact, ${counted(entries, 'entry', 'entries')}`])
    for (const { chain, sequence, hash } of heads)
      print.note(`head ${several ? `of chain ${printable(chain)} ` : ''}${sequence} ${hash}; keep it elsewhere`)
    return
  }
  const differences = answer.rows?.differences ?? []
  if (broken === null) {
    const lines = differences.map(({ row, subject, why, fenced }) =>
      printable(`${row} ${subject}: ${why}${fenced ? ' (shut out until you have looked)' : ''}`),
    )
    print.answer(answer, () => [`chain intact, ${differ(differences.length)} from it`, ...lines])
    print.note('next: find out who writes to the database, then look at each: muster alert list')
    return cli.exit.finish(exitCodes.journalBroken)
  }
  const where =
    broken === null
      ? ''
      : broken.from === broken.to
        ? ` at entry ${broken.from}`
        : ` between entries ${broken.from} and ${broken.to}`
  print.answer(answer, () => [`chain broken${where}${broken === null ? '' : `: ${printable(broken.why)}`}`])
  print.note('next: keep the data folder as it is, and compare with your last export: muster journal export')
  cli.exit.finish(exitCodes.journalBroken)
}
