import { StoreRefused } from '#plane/store/contract/store-errors.ts'

/** Before it, a checkpoint that met a writer could lose what the WAL held. */
const oldest = [3, 51, 3] as const

export const refuseOldSqlite = (version: string): void => {
  const parts = version.split('.').map(Number)
  const differing = oldest.findIndex((part, index) => part !== parts[index])
  if (differing === -1 || (parts[differing] ?? 0) > (oldest[differing] as number)) return
  throw new StoreRefused(
    'SQLITE_TOO_OLD',
    `this Node carries SQLite ${version}; from ${oldest.join('.')} on, its write-ahead log is safe`,
    'Run Muster with the Node it pins: ./muster',
  )
}
