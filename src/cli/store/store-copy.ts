// The copies of a store: a backup while its replicas run, a restored backup, a store that moves to another place.

import * as path from 'node:path'
import { ConfigProblem, readPlaneConfig, type PlaneConfig } from '#plane/config/config.ts'
import { backupStore } from '#plane/store/copy/backup-store.ts'
import { copyStore, restoreStore, type CopiedStore } from '#plane/store/copy/copy-store.ts'
import { manifestText, type Manifest } from '#plane/store/copy/manifest.ts'
import { createFile } from '#platform/folder.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { refusing, storeRun, withStore, type StoreOptions } from './store-run.ts'

export const storeBackup = async (cli: Cli, options: StoreOptions, folder: string): Promise<void> => {
  const run = storeRun(cli)
  const done = await withStore(cli, options, 'There is no backup.', (config) =>
    backupStore(config, folder, run).finally(run.over),
  )
  const print = printer(cli, options)
  print.answer({ folder, ...copiedBody(done), with_sealing_key: done.withSealingKey }, () =>
    renderFacts([['folder', folder], ...copiedFacts(done)]),
  )
  if (done.withSealingKey) print.note('the sealing key and admin.key are in it: it is as secret as the plane itself')
  else print.note(`the sealing key (${done.sealingKeyFile}) and admin.key are not in it: keep copies of them elsewhere`)
  const sealKey = done.withSealingKey ? '' : ` --seal-key ${shellWord(done.sealingKeyFile)}`
  print.note(`to restore: muster store restore ${shellWord(folder)} --store sqlite --data FOLDER${sealKey}`)
}

type RestoreOptions = StoreOptions & { readonly domain?: string; readonly manifest?: string }

export const storeRestore = async (cli: Cli, options: RestoreOptions, backup: string): Promise<void> => {
  const run = storeRun(cli)
  const { store, done } = await withStore(cli, options, 'Nothing was restored.', async (config) => {
    const restored = await restoreStore(backup, config, domainOf(cli, options), run).finally(run.over)
    return { store: config.store.kind, done: restored }
  })
  keepManifest(options.manifest, done.manifest)
  const print = printer(cli, options)
  print.answer({ store, ...copiedBody(done) }, () => renderFacts([['store', store], ...copiedFacts(done)]))
  const data = store === 'sqlite' && options.data !== undefined ? ` --data ${shellWord(options.data)}` : ''
  const sealKey = done.withSealingKey ? '' : ` --seal-key ${shellWord(done.sealingKeyFile)}`
  if (!done.withSealingKey) print.note('operator keys are as they were, and admin.key is not among them')
  print.note(`next: muster plane --store ${store}${data}${sealKey}; and then: muster store confirm`)
}

type CopyOptions = GlobalOptions & {
  readonly from: string
  readonly to: string
  readonly sealKey?: string
  readonly domain?: string
  readonly manifest?: string
}

export const storeCopy = async (cli: Cli, options: CopyOptions): Promise<void> => {
  const run = storeRun(cli)
  const { to, done } = await refusing('Nothing was copied.', async () => {
    const from = placeConfig(cli, options, '--from', options.from)
    const to = placeConfig(cli, options, '--to', options.to)
    return { to, done: await copyStore(from, to, domainOf(cli, options), run).finally(run.over) }
  })
  keepManifest(options.manifest, done.manifest)
  const print = printer(cli, options)
  const store = to.store.kind
  print.answer({ store, ...copiedBody(done) }, () => renderFacts([['store', store], ...copiedFacts(done)]))
  print.note('operator keys are unchanged and still work; admin.key stays in the old data folder')
  const data = store === 'sqlite' ? ` --data ${shellWord(options.to)}` : ''
  const sealKey = ` --seal-key ${shellWord(done.sealingKeyFile)}`
  print.note(`next: muster plane --store ${store}${data}${sealKey}; and never start the old one again`)
}

/** `store export` and `store import` of 0.2. */
export const storeExportGone = async (): Promise<void> => {
  throw usageFailure(
    'store export is gone.',
    'To move a store: muster store copy --from PLACE --to PLACE; to keep a copy of it: muster store backup FOLDER',
  )
}

export const storeImportGone = async (): Promise<void> => {
  throw usageFailure(
    'store import is gone.',
    'To read a file that store export has made: muster store restore FILE --store sqlite|postgres --seal-key FILE',
  )
}

const domainOf = (cli: Cli, { domain }: { readonly domain?: string }): string | null =>
  domain ?? cli.env['MUSTER_DOMAIN'] ?? null

const inFile = 'postgres:'

/** What was given instead is never repeated: it is an address with a password more often than not. */
const placeConfig = (cli: Cli, options: CopyOptions, option: string, place: string): PlaneConfig => {
  const { sealKey } = options
  const others = sealKey === undefined ? {} : { sealKey }
  if (place.includes('://'))
    throw new ConfigProblem(
      `${option} takes a data folder, postgres, or postgres:FILE with the name of a file that holds the address. A password that was given here is to be changed`,
    )
  if (place === 'postgres') return readPlaneConfig({ ...options, ...others, store: 'postgres' }, cli.env)
  if (place.startsWith(inFile)) {
    const file = path.resolve(place.slice(inFile.length))
    return readPlaneConfig({ ...options, ...others, store: 'postgres' }, { ...cli.env, MUSTER_STORE_FILE: file })
  }
  return readPlaneConfig({ ...others, store: 'sqlite', data: place }, cli.env)
}

const keepManifest = (file: string | undefined, manifest: Manifest): void => {
  if (file !== undefined) createFile(file, manifestText(manifest), 0o600)
}

type Copied = Pick<CopiedStore, 'domain' | 'counts' | 'heads' | 'sha256'>

const copiedBody = ({ domain, counts, heads, sha256 }: Copied) => ({ domain, counts, heads, sha256 })

const copiedFacts = ({ domain, counts, heads, sha256 }: Copied): (readonly [string, string | string[]])[] => [
  ['domain', domain],
  ['nodes', String(counts.node)],
  ['certificates', String(counts.certificate)],
  ['sealed keys', String(counts.key)],
  ['journal', `intact, ${counts.entry} ${counts.entry === 1 ? 'entry' : 'entries'}`],
  ['heads', heads.map(({ chain, sequence, hash }) => `${chain} ${sequence} ${hash}`)],
  ['sha256', sha256],
]
