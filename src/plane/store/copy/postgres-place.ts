// A store in PostgreSQL that no plane runs on: whoever has a lease is asked to stop first, and nobody can begin one
// while it is read or filled.

import { sha256Hex } from '#platform/bytes.ts'
import type { PgRow, PgSession, PgValue } from '#platform/postgres.ts'
import { schemaOf } from '#plane/store/postgres/run-migrations.ts'
import { isMoved } from '#plane/keys/key-files.ts'
import { schemaOld } from './sqlite-place.ts'
import type { Dialect, ReadableStore } from './stored-records.ts'
import { TransferRefused } from './transfer-errors.ts'

const dialect: Dialect = {
  store: 'postgres',
  tokenOrder: 'made',
  chains:
    'SELECT chain, domain, base_sequence AS sequence, base_hash AS hash, base_signature AS signature, base_key_id AS key_id FROM chain',
  chainColumn: true,
  heads: 'SELECT chain, sequence, hash FROM chain ORDER BY chain',
}

/** Reading or filling takes as long as it takes; waiting for others does not. */
export const transferSettings = { idle_in_transaction_session_timeout: '0', lock_timeout: '5s' }

type Ask = (text: string, values: readonly PgValue[]) => Promise<readonly PgRow[]>

/** Statements of transfer are written with `?`. Each is parsed once a session, under a name made of its text. */
export const asking =
  (session: PgSession): Ask =>
  async (text, values) => {
    let at = 0
    const numbered = text.replace(/\?/g, () => `$${++at}`)
    const { rows } = await session.run({ name: `transfer-${sha256Hex(text).slice(0, 16)}`, text: numbered }, values)
    return rows
  }

export const readablePostgres = (session: PgSession): ReadableStore => {
  const ask = asking(session)
  return {
    dialect,
    query: ask,
    async keys() {
      const rows = await ask('SELECT name, sealed FROM sealed_key', [])
      const keys = rows.map((row) => [String(row['name']), String(row['sealed'])] as const)
      return new Map(keys.filter(([name]) => isMoved(name)))
    },
  }
}

/** Throws where there is no schema, an older one, or a newer one. Returns its number. */
export const currentSchema = async (session: PgSession): Promise<number> => {
  const { version, newest } = await schemaOf(session)
  if (version === null)
    throw new TransferRefused(
      'NO_STORE',
      'there is no store of Muster in this database',
      'Name another database, or bring a domain into this one: muster store import FILE --store postgres',
    )
  if (version < newest) throw schemaOld(version, newest)
  return version
}

export const refuseLeased = async (session: PgSession): Promise<void> => {
  const ask = asking(session)
  const leased = await ask('SELECT name FROM replica WHERE expires_at > clock_timestamp() ORDER BY number', [])
  if (leased.length === 0) return
  const names = leased.map((row) => String(row['name'])).join(', ')
  throw new TransferRefused(
    'STORE_IN_USE',
    `planes run on this database: ${names}`,
    'Stop them first; one that was killed counts as running for 15 seconds more',
  )
}

/** As it is in one moment. Takes the session over. */
export const openPostgresSource = async (
  session: PgSession,
): Promise<ReadableStore & { readonly schema: number; close(): Promise<void> }> => {
  try {
    const schema = await currentSchema(session)
    await refuseLeased(session)
    // The lock comes before the first look, so that nobody's lease lies between the two.
    await session.exec('BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE replica IN SHARE MODE')
    await refuseLeased(session)
    return { ...readablePostgres(session), schema, close: () => session.end() }
  } catch (error) {
    await session.end()
    throw error
  }
}
