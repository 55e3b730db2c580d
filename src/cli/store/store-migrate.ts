import { migrateStore, type Migrated } from '#plane/store/copy/migrate-store.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { printer } from '#cli/kit/print.ts'
import { withStore, type StoreOptions } from './store-run.ts'

export const storeMigrate = async (cli: Cli, options: StoreOptions & { readonly dryRun?: boolean }): Promise<void> => {
  const dryRun = options.dryRun === true
  const done = await withStore(cli, options, 'Nothing was changed.', (config) => migrateStore(config, dryRun))
  printer(cli, options).answer({ from: done.from, to: done.to, dry_run: dryRun }, () => [sentence(done, dryRun)])
}

const sentence = ({ from, to }: Migrated, dryRun: boolean): string => {
  if (from === to) return `schema ${to} is the newest; there is nothing to do`
  const before = from === null ? 'no schema' : `schema ${from}`
  return dryRun ? `${before} would become schema ${to}; nothing was changed` : `${before} became schema ${to}`
}
