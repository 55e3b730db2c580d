// `muster journal`: reading, following, exporting and verifying it.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'
import { connect, type OperatorClient, waitForPlane } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { canonicalJson, type CanonicalValue } from '#plane/store/journal/canonical-json.ts'
import { printableJson, printable } from '#cli/kit/printable.ts'
import type { Static } from 'typebox'
import { type JournalAnswer, type EntryView, journalApi } from '#wire/journal/journal-api.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { counted } from '#domain/core/in-words.ts'
import { isoTime } from '#platform/clock.ts'

export const declareJournal = (journal: Command, cli: Cli): void => {
  noun(journal, [
    ['muster journal follow', ''],
    ['muster journal verify', ''],
  ])

  const list = filters(
    verb(journal, 'list', 'The newest entries, oldest first', [
      ['muster journal list', ''],
      ['muster journal list --node gpu-001 --last 200', 'the story of one node'],
      ['muster journal list --type refused', ''],
    ]),
  ).option('--last <count>', 'how many (at most 1000)', '50')
  performs(cli, list, journalList)

  const follow = filters(
    verb(journal, 'follow', 'Entries as they happen, until Ctrl-C', [
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
    verb(journal, 'export', 'Every entry with its hash, one JSON object a line', [
      ['muster journal export > journal.ndjson', ''],
      ['muster journal export --after "$LAST_CURSOR" >> journal.ndjson', 'what is new since then'],
    ]),
  ).option('--after <cursor>', 'only what comes behind this cursor')
  performs(cli, exported, journalExport)
}

const filters = (command: Command): Command =>
  command.option('--node <id>', 'only entries about this node').option('--type <type>', 'only entries of this type')

const journalList = async (cli: Cli, options: JournalFilter & { readonly last: string }): Promise<void> => {
  const last = countOption(options.last)
  const page = await askJournal(connect(cli, options), options, { last })
  printer(cli, options).answer(page, () => page.entries.map(journalLine))
}

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

export type JournalFilter = GlobalOptions & { readonly node?: string; readonly type?: string }
export type Entry = Static<typeof EntryView>
type JournalPage = Static<typeof JournalAnswer>

const askJournal = (
  plane: OperatorClient,
  filter: JournalFilter,
  page: { last?: number; limit?: number; after?: string; wait_ms?: number },
): Promise<JournalPage> =>
  plane.ask(journalApi.read, {
    query: { node: filter.node, type: filter.type, ...page },
    timeoutMs: 30_000 + (page.wait_ms ?? 0),
  })

const countOption = (text: string): number => {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > 1000) throw usageFailure(`--last ${text} is not a number from 1 to 1000.`)
  return count
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

/** Shown at their own places, or of no use on a line. */
const placed = [
  'schema',
  'domain',
  'operation',
  'chain',
  'sequence',
  'atMs',
  'correlation',
  'type',
  'actor',
  'node',
  'body',
]

/** One entry as a line for people. What it holds was supplied by nodes too, hence `printable`. */
export const journalLine = ({ cursor, entry }: Entry): string => {
  const body = entry['body']
  const details = [
    ...Object.entries(entry).filter(([name]) => !placed.includes(name)),
    ...(typeof body === 'object' && body !== null ? Object.entries(body) : []),
  ].filter(([, value]) => value !== null)
  const atMs = entry['atMs']
  return printable(
    [
      textOf(entry['sequence'] ?? cursor),
      typeof atMs === 'number' ? isoTime(atMs) : '-',
      textOf(entry['type']),
      textOf(entry['node']),
      `by ${textOf(entry['actor'])}`,
      ...details.map(([name, value]) => `${name}=${textOf(value)}`),
    ].join('  '),
  )
}

const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return '-'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /\s/.test(text) ? JSON.stringify(text) : text
}
