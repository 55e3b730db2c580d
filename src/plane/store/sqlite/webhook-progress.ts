// How far the webhook has come in the journal: one row, written beside the commits and never with them.

import type { Database } from '#platform/sqlite.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { WebhookProgress } from '#plane/store/contract/store.ts'
import { transact } from './transact.ts'

export const openWebhookProgress = (database: Database) => {
  const select = database.prepare('SELECT doc FROM webhook_progress WHERE id = 1')
  const upsert = database.prepare('INSERT OR REPLACE INTO webhook_progress (id, doc) VALUES (1, ?)')
  return {
    read(): WebhookProgress | null {
      const found = select.get()
      return found === undefined ? null : (JSON.parse(String(found['doc'])) as WebhookProgress)
    },
    keep(progress: WebhookProgress): void {
      try {
        transact(database, () => void upsert.run(JSON.stringify(progress)))
      } catch (error) {
        throw new StoreFault('how far the webhook has come could not be written', error)
      }
    },
  }
}
