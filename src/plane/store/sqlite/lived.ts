// How long planes have led on this store: one row, written beside the commits and never with them.

import type { Database } from '#platform/sqlite.ts'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import { transact } from './transact.ts'

export const openLived = (database: Database) => {
  const select = database.prepare('SELECT ms FROM lived WHERE id = 1')
  const add = database.prepare('UPDATE lived SET ms = ms + ? WHERE id = 1')
  return {
    read: (): number => Number(select.get()?.['ms'] ?? 0),
    add(ms: number): void {
      try {
        transact(database, () => void add.run(Math.floor(ms)))
      } catch (error) {
        throw new StoreFault('how long the plane has lived could not be written', error)
      }
    },
  }
}
