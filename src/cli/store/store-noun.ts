import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, loads, verb } from '#cli/kit/verb.ts'

export const declareStore = (program: Command, cli: Cli): void => {
  const store = noun(program, 'store', 'What a plane keeps: look at it, move it, copy it', [
    ['muster store status', ''],
    ['muster store backup /backups/monday', 'while the plane runs'],
  ])

  const status = whichStore(
    verb(store, 'status', 'Where the store is, what is in it and which planes are at it; with or without a plane', [
      ['muster store status', 'of ./data'],
      ['MUSTER_STORE_FILE=/etc/muster/store muster store status --store postgres', ''],
    ]),
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
  loads(cli, migrate, async () => (await import('./store-migrate.ts')).storeMigrate)

  const exported = sealKey(
    whichStore(
      verb(store, 'export <file>', 'The whole domain into one new file, with every plane stopped; keys stay sealed', [
        ['muster store export /srv/domain.export', 'out of ./data'],
        ['muster store export /srv/domain.export --store postgres --seal-key /etc/muster/seal.key', ''],
      ]),
    ),
  )
  loads(cli, exported, async () => (await import('./store-export.ts')).storeExport)

  const imported = sealKey(
    verb(store, 'import <file>', 'What store export wrote, into an empty store', [
      ['muster store import /srv/domain.export --store postgres --seal-key /etc/muster/seal.key', ''],
      ['muster store import /srv/domain.export --store sqlite --data ./new --seal-key ./old/seal.key', ''],
    ])
      .requiredOption(
        '--store <sqlite|postgres>',
        'where to: SQLite in --data, or PostgreSQL (see: muster plane --help)',
      )
      .option('--domain <name>', 'refuse the file of any other domain (MUSTER_DOMAIN)'),
  )
  loads(cli, imported, async () => (await import('./store-import.ts')).storeImport)

  const backup = sealKey(
    whichStore(
      verb(
        store,
        'backup <folder>',
        'Copy the data folder of a plane on SQLite into a new folder, while it runs, and verify the copy. The copy is a data folder: to restore it, start a plane on a copy of it. PostgreSQL is backed up with its own tools: pg_basebackup, pgBackRest (docs/OPERATIONS.md)',
        [
          ['muster store backup /backups/monday', 'of ./data'],
          ['muster store backup /backups/monday --data /srv/muster --seal-key /etc/muster/seal.key', ''],
        ],
      ),
    ),
  ).summary('Copy the data folder of a plane on SQLite, while it runs, and verify the copy')
  loads(cli, backup, async () => (await import('./store-backup.ts')).storeBackup)

  const confirm = verb(
    store,
    'confirm',
    'After an older copy of the store was restored: what its nodes know of and it does not; with a reason, issue from it again',
    [
      ['muster store confirm', 'what speaks against the store'],
      ['muster store confirm --reason "restored monday after the disk died"', ''],
    ],
  ).option('--reason <text>', 'take it for what it is; goes into the journal')
  loads(cli, confirm, async () => (await import('./store-confirm.ts')).storeConfirm)
}

const whichStore = (command: Command): Command =>
  command.option(
    '--store <sqlite|postgres>',
    'SQLite in --data, or PostgreSQL, found as by muster plane (MUSTER_STORE, MUSTER_STORE_FILE)',
  )

const sealKey = (command: Command): Command =>
  command.option('--seal-key <file>', 'key that seals the keys; default seal.key in the data folder (MUSTER_SEAL_KEY)')
