// The file of passwords that PostgreSQL's own programs read: host:port:database:user:password a line, * for any, a colon
// or a backslash after a backslash, the first line that fits.

import type { PostgresHost } from '#platform/postgres.ts'

export type PgpassQuestion = PostgresHost & { readonly database: string; readonly user: string }

/** The host name for a connection without a host. */
const defaultSocketFolders = ['/var/run/postgresql', '/run/postgresql', '/tmp']

/** Null: no line fits. */
export const passwordIn = (text: string, { host, port, database, user }: PgpassQuestion): string | null => {
  const hostName = defaultSocketFolders.includes(host) ? 'localhost' : host
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue
    const fields = fieldsOf(line)
    if (fields === null) continue
    const [password, ...asked] = fields
    const wanted = [hostName, String(port), database, user]
    if (asked.every((field, at) => field === null || field === wanted[at])) return password
  }
  return null
}

type Fields = readonly [password: string, ...asked: (string | null)[]]

/** A lone `*` is null. The password is everything behind the fourth colon. */
const fieldsOf = (line: string): Fields | null => {
  const asked: (string | null)[] = []
  let rest = line
  while (asked.length < 4) {
    const [field, text] = /^((?:\\.|[^\\:])*):/s.exec(rest) ?? []
    if (field === undefined || text === undefined) return null
    asked.push(text === '*' ? null : unescaped(text))
    rest = rest.slice(field.length)
  }
  return [unescaped(rest), ...asked]
}

const unescaped = (text: string): string => text.replace(/\\(.)/gs, '$1')
