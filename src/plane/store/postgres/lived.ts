// How long planes have led on this store: one row, written beside the commits and never with them.

import type { Prepared } from '#platform/postgres.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'
import { Fenced } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { PgAccess } from './pg-access.ts'

export const openPgLived = (deps: {
  readonly access: Pick<PgAccess, 'read' | 'write'>
  self(): ReplicaNumber
}): Pick<Store, 'lived' | 'addLived'> => ({
  async lived() {
    const { rows } = await deps.access.read(select)
    return Number(rows[0]?.['ms'] ?? 0)
  },
  async addLived(ms) {
    const { count } = await deps.access.write(add, [Math.floor(ms), deps.self()])
    if (count === 0) throw new Fenced('how long planes have led is written by the one that leads')
  },
})

const select: Prepared = { name: 'lived', text: 'SELECT ms FROM lived WHERE id = 1' }

/** Two that lead at once would count the same hour twice. */
const add: Prepared = {
  name: 'add-lived',
  text: `UPDATE lived SET ms = ms + $1::bigint WHERE id = 1
    AND EXISTS (SELECT FROM leadership JOIN replica ON replica.number = leadership.replica
      WHERE leadership.replica = $2 AND replica.expires_at > clock_timestamp())`,
}
