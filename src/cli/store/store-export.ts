import { exportStore } from '#plane/store/copy/export-store.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { printer } from '#cli/kit/print.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { storeRun, withStore, type StoreOptions } from './store-run.ts'
import { movedBody, movedFacts } from './store-moved.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const storeExport = async (cli: Cli, options: StoreOptions, file: string): Promise<void> => {
  const run = storeRun(cli)
  const { from, done } = await withStore(cli, options, 'Nothing was exported.', async (config) => {
    const from = config.store.kind
    return { from, done: await exportStore(config, file, { ...run, clock: cli.clock }).finally(run.over) }
  })
  const print = printer(cli, options)
  print.answer({ file, ...movedBody(done), sha256: done.sha256 }, () =>
    renderFacts([['file', file], ...movedFacts(done), ['sha256', done.sha256]]),
  )
  print.note(`the sealing key is not in it, and without it nobody can use it; it stays in ${done.sealingKeyFile}`)
  // SQLite has one chain.
  const to = from === 'postgres' && done.heads.length === 1 ? 'sqlite --data FOLDER' : 'postgres'
  print.note(`next: muster store import ${shellWord(file)} --store ${to} --seal-key FILE`)
}
