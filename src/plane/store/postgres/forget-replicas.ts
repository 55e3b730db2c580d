// What replicas leave behind that did not say goodbye. Numbers are never given again, so what is found to be over stays so.

import type { PgSession, Prepared } from '#platform/postgres.ts'
import type { ReplicaNumber } from '#plane/store/contract/replicas.ts'

/** How many rows one statement removes: it holds their locks until it is done. */
const atOnce = 1000

/** Removing a lease waits for whoever still writes under it; rather than wait for long it fails, and is tried again. */
export const forgetReplicas = async (session: Pick<PgSession, 'run'>, forgetAfterMs: number): Promise<void> => {
  await session.run(forgetLeases, [forgetAfterMs])
  const { rows } = await session.run(lostHolders)
  const gone = rows.map((row) => row['replica'] as ReplicaNumber)
  if (gone.length === 0) return
  for (let count = atOnce; count === atOnce;) count = (await session.run(forgetHolders, [gone, atOnce])).count
}

const forgetLeases: Prepared = {
  name: 'forget-leases',
  text: `DELETE FROM replica WHERE expires_at < clock_timestamp() - $1::float8 * interval '1 millisecond'`,
}

const lostHolders: Prepared = {
  name: 'forget-lost-holders',
  text: `SELECT DISTINCT replica FROM holder
    WHERE NOT EXISTS (SELECT FROM replica WHERE replica.number = holder.replica)`,
}

const forgetHolders: Prepared = {
  name: 'forget-holders',
  text: `WITH lost AS (SELECT node FROM holder WHERE replica = ANY ($1::bigint[]) ORDER BY node LIMIT $2 FOR UPDATE)
    DELETE FROM holder USING lost WHERE holder.node = lost.node AND holder.replica = ANY ($1::bigint[])`,
}
