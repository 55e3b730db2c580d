// Sealed keys that every replica shares. What is in here cannot be opened without the sealing key, which is elsewhere.

import type { Prepared } from '#platform/postgres.ts'
import type { SealedKeys } from '#plane/store/contract/store.ts'
import type { PgAccess } from './pg-access.ts'

export const openSealedKeys = (access: Pick<PgAccess, 'read' | 'write'>): SealedKeys => ({
  async all() {
    const { rows } = await access.read(select)
    return new Map(rows.map((row) => [row['name'] as string, row['sealed'] as string]))
  },
  add: async (name, sealed) => (await access.write(insert, [name, sealed])).count === 1,
  remove: async (name) => void (await access.write(remove, [name])),
})

const select: Prepared = { name: 'sealed-keys', text: 'SELECT name, sealed FROM sealed_key' }
const insert: Prepared = {
  name: 'add-sealed-key',
  text: 'INSERT INTO sealed_key (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING',
}
const remove: Prepared = { name: 'remove-sealed-key', text: 'DELETE FROM sealed_key WHERE name = $1' }
