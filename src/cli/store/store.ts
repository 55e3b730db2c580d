// `muster store`: what its verbs are, and confirming a store, which asks the plane. What opens a store is in the files beside it.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { loads, noun, performs, verb } from '#cli/kit/verb.ts'
import { type DoubtView, storeApi } from '#wire/continuity/store-api.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { planeConfigOption } from '#cli/plane/plane.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const declareStore = (store: Command, cli: Cli): void => {
  noun(store, [
    ['muster store status', ''],
    ['muster store backup /backups/monday', 'while the plane runs'],
  ])

  const status = whichStore(
    verb(
      store,
      'status',
      'Show where the store is, what is in it and which planes use it; with or without a running plane',
      [
        ['muster store status', 'of ./data'],
        ['MUSTER_STORE_FILE=/etc/muster/store muster store status --store postgres', ''],
      ],
    ),
  )
  loads(cli, status, async () => (await import('./store-status.ts')).storeStatusVerb)

  const migrate = whichStore(
    verb(
      store,
      'migrate',
      'Bring the schema up to date, as a plane does when it starts; SQLite: with the plane stopped',
      [
        ['muster store migrate --dry-run', 'what it would do'],
        ['muster store migrate --store postgres', 'by a user who may, where planes may not'],
      ],
    ),
  ).option('--dry-run', 'look, and change nothing')
  loads(cli, migrate, async () => (await import('./store-status.ts')).storeMigrate)

  const backup = sealKey(
    whichStore(
      verb(
        store,
        'backup <folder>',
        'Copy a store into a new folder, while its planes run, and verify the copy. The folder is a data folder with a signed manifest.json: restore it into either store. PostgreSQL as a whole is backed up with its own tools: pg_basebackup, pgBackRest (docs/DAY-2.md)',
        [
          ['muster store backup /backups/monday', 'of ./data'],
          ['muster store backup /backups/monday --data /srv/muster --seal-key /etc/muster/seal.key', ''],
          ['muster store backup /backups/monday --store postgres --seal-key /etc/muster/seal.key', ''],
        ],
      ),
    ),
  ).summary('Copy a store into a new folder, while its planes run, and verify the copy')
  loads(cli, backup, async () => (await import('./store-copy.ts')).storeBackup)

  const restore = copyOptions(
    verb(store, 'restore <backup>', 'Restore a backup, or an export of 0.2, into an empty store', [
      ['muster store restore /backups/monday --store sqlite --data ./new', ''],
      ['muster store restore /backups/monday --store postgres --seal-key /etc/muster/seal.key', ''],
    ]).requiredOption(
      '--store <sqlite|postgres>',
      'where to: SQLite in --data, or PostgreSQL (see: muster plane --help)',
    ),
  )
  loads(cli, restore, async () => (await import('./store-copy.ts')).storeRestore)

  const copy = copyOptions(
    verb(store, 'copy', 'Move a domain into an empty store, with every plane stopped; keys stay sealed', [
      ['muster store copy --from ./data --to postgres --seal-key /etc/muster/seal.key', ''],
      ['muster store copy --from postgres --to ./data --seal-key /etc/muster/seal.key', ''],
      ['muster store copy --from postgres:/etc/muster/old --to postgres:/etc/muster/new --seal-key FILE', ''],
    ])
      .requiredOption('--from <place>', 'a data folder; postgres, as MUSTER_STORE_FILE has it; or postgres:FILE')
      .requiredOption('--to <place>', 'the same; nothing may be there'),
  )
  loads(cli, copy, async () => (await import('./store-copy.ts')).storeCopy)

  // For one release they say what has replaced them.
  const gone = (usage: string) => store.command(usage, { hidden: true }).allowUnknownOption().allowExcessArguments()
  loads(cli, gone('export'), async () => (await import('./store-copy.ts')).storeExportGone)
  loads(cli, gone('import'), async () => (await import('./store-copy.ts')).storeImportGone)

  const confirm = verb(
    store,
    'confirm',
    'Show the journal entries that a restored store lost; with --reason, resume issuance',
    [
      ['muster store confirm', 'what the store has lost'],
      ['muster store confirm --reason "restored monday after the disk died"', ''],
    ],
  ).option('--reason <text>', 'why the store is to be used as it is; goes into the journal')
  performs(cli, confirm, storeConfirm)
}

const whichStore = (command: Command): Command =>
  planeConfigOption(command).option(
    '--store <sqlite|postgres>',
    'SQLite in --data, or PostgreSQL, found as by muster plane (MUSTER_STORE, MUSTER_STORE_FILE)',
  )

const sealKey = (command: Command): Command =>
  command.option('--seal-key <file>', 'key that seals the keys; default seal.key in the data folder (MUSTER_SEAL_KEY)')

const copyOptions = (command: Command): Command =>
  planeConfigOption(sealKey(command))
    .option('--domain <name>', 'refuse any other domain (MUSTER_DOMAIN)')
    .option('--manifest <file>', 'also write the signed manifest into this new file')

const storeConfirm = async (cli: Cli, options: GlobalOptions & { readonly reason?: string }): Promise<void> => {
  const plane = connect(cli, options)
  const print = printer(cli, options)
  if (options.reason === undefined) {
    const found = await plane.ask(storeApi.continuity)
    const { doubt } = found
    print.answer(found, () =>
      doubt === null
        ? ['The store has lost nothing that its planes or agents know of.']
        : renderFacts(doubtFacts(doubt)),
    )
    if (doubt === null) return
    print.note(`${whatToDo(doubt)} Then: muster store confirm --reason REASON`)
    return cli.exit.finish(exitCodes.notReady)
  }
  const body = { reason: options.reason }
  const done = await plane.ask(storeApi.confirm, { body })
  print.answer(done, () =>
    renderFacts([
      ['store', `confirmed: certificates are issued again (lineage ${done.lineage})`],
      ...doubtFacts(done.confirmed),
    ]),
  )
  print.note(whatToDo(done.confirmed))
}

const doubtFacts = (doubt: DoubtView): readonly (readonly [string, string])[] => [
  ['doubted', `since ${doubt.since}`],
  ['why', doubt.in_words],
  [
    'missing',
    doubt.missing === null
      ? 'not known: the restored copy has been written to since'
      : `at least ${doubt.missing} entries`,
  ],
  ['newest entry', doubt.newest_entry === null ? 'not known' : `${doubt.newest_entry} when the planes were started`],
]

const whatToDo = ({ newest_entry: since }: DoubtView): string =>
  `What was done after ${since ?? 'this copy was made'} may be forgotten here: revoke again what was revoked since, with its tokens and operator keys; machines that enrolled since need a new token.`
