import { importStore } from '#plane/store/copy/import-store.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { printer } from '#cli/kit/print.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { storeRun, withStore, type StoreOptions } from './store-run.ts'
import { movedBody, movedFacts } from './store-moved.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const storeImport = async (
  cli: Cli,
  options: StoreOptions & { readonly domain?: string },
  file: string,
): Promise<void> => {
  const run = storeRun(cli)
  const { store, done } = await withStore(cli, options, 'Nothing was imported.', async (config) => {
    const domain = options.domain ?? cli.env['MUSTER_DOMAIN'] ?? null
    const store = config.store.kind
    return { store, done: await importStore(config, file, domain, run).finally(run.over) }
  })
  const print = printer(cli, options)
  print.answer({ store, ...movedBody(done) }, () => renderFacts([['store', store], ...movedFacts(done)]))
  print.note('operator keys are as they were: whoever had one has it still; admin.key stays in the old data folder')
  const where = store === 'sqlite' && options.data !== undefined ? ` --data ${shellWord(options.data)}` : ''
  const sealKey = options.sealKey === undefined ? '' : ` --seal-key ${shellWord(options.sealKey)}`
  print.note(`next: muster plane --store ${store}${where}${sealKey}; and never start the old one again`)
}
