import { backupStore } from '#plane/store/copy/backup-store.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { printer } from '#cli/kit/print.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { storeRun, withStore, type StoreOptions } from './store-run.ts'
import { movedBody, movedFacts } from './store-moved.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const storeBackup = async (cli: Cli, options: StoreOptions, folder: string): Promise<void> => {
  const run = storeRun(cli)
  const done = await withStore(cli, options, 'There is no backup.', (config) =>
    backupStore(config, folder, run).finally(run.over),
  )
  const print = printer(cli, options)
  print.answer({ folder, ...movedBody(done), with_sealing_key: done.withSealingKey }, () =>
    renderFacts([['folder', folder], ...movedFacts(done)]),
  )
  if (done.withSealingKey) print.note('the sealing key and admin.key are in it: it is as secret as the plane itself')
  else print.note(`the sealing key (${done.sealingKeyFile}) and admin.key are not in it: keep copies of them elsewhere`)
  const sealKey = done.withSealingKey ? '' : ` --seal-key ${shellWord(done.sealingKeyFile)}`
  print.note(`to restore: copy it, and muster plane --data COPY${sealKey}`)
}
