// PostgreSQL as the store needs it: connections to a primary and nothing else, statements that are parsed once, and errors
// told apart by what can be done about them.

/** Where the database is. Several hosts are the members of one cluster: whichever of them is the primary is used. */
export type PostgresTarget = {
  /** A host that begins with `/` is a folder with a Unix socket. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  readonly database: string
  readonly user: string
  /** Asked at every connection, so that a changed password file is seen; null: none is needed. */
  readonly password: () => Promise<string | null>
  /** Null: no TLS, which only a Unix socket or a loopback address may do without. Always verified, name included. */
  readonly tls: { readonly ca: string | null } | null
}

/** Parsed once a connection, under this name. */
export type Prepared = { readonly name: string; readonly text: string }

export type PgValue = string | number | bigint | boolean | Uint8Array | null | readonly PgValue[]
export type PgRow = Readonly<Record<string, unknown>>
/** `count`: rows returned or changed. */
export type PgResult = { readonly rows: readonly PgRow[]; readonly count: number }

/** One connection. Statements run in the order they are given; BIGINT comes back as a number. */
export type PgSession = {
  run(statement: Prepared, values?: readonly PgValue[]): Promise<PgResult>
  /** Several statements without values, such as BEGIN or a schema. */
  exec(sql: string): Promise<void>
  onNotification(run: (channel: string, payload: string) => void): void
  /** Warnings of the server: one that comes with a COMMIT may say that it was not replicated. */
  onWarning(run: (message: string) => void): void
  /** Once, however it ends. */
  onEnd(run: (error: unknown) => void): void
  readonly ended: boolean
  /** Cuts the connection without a word, whatever is under way. */
  destroy(): void
  end(): Promise<void>
}

export type PgTrouble =
  /** A unique value is taken. */
  | 'unique'
  /** Try the transaction again: a deadlock, a serialization failure, a lock that was not had in time. */
  | 'again'
  /** The connection is gone, cannot be made, or no longer leads to a primary. */
  | 'connection'
  /** Name, password, database, rights. */
  | 'refused'
  | 'other'
