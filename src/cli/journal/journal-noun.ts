import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declareJournal = (program: Command, cli: Cli): void => {
  const journal = noun(program, 'journal', 'The hash-chained record of everything that happened', [
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
  performs(cli, list, async () => (await import('./journal-list.ts')).journalList)

  const follow = filters(
    verb(journal, 'follow', 'Entries as they happen, until Ctrl-C', [
      ['muster journal follow', ''],
      ['muster journal follow -o json', 'one JSON object a line'],
    ]),
  ).option('--last <count>', 'begin with so many older ones', '10')
  performs(cli, follow, async () => (await import('./journal-follow.ts')).journalFollow)

  const verify = verb(
    journal,
    'verify',
    'Recompute every hash, check every signed head, and compare rows with their entries',
    [['muster journal verify', 'chain intact, N entries']],
  )
  performs(cli, verify, async () => (await import('./journal-verify.ts')).journalVerify)

  const exported = filters(
    verb(journal, 'export', 'Every entry with its hash, one JSON object a line', [
      ['muster journal export > journal.ndjson', ''],
      ['muster journal export --after "$LAST_CURSOR" >> journal.ndjson', 'what is new since then'],
    ]),
  ).option('--after <cursor>', 'only what comes behind this cursor')
  performs(cli, exported, async () => (await import('./journal-export.ts')).journalExport)
}

const filters = (command: Command): Command =>
  command.option('--node <id>', 'only entries about this node').option('--type <type>', 'only entries of this type')
