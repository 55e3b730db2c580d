// The address of a database as one line: postgres://user:password@host:port,host:port/database?sslmode=verify-full. Its
// text is secret as a whole: what is wrong with it is said without repeating any of it, because a mistyped address has
// parts of the password anywhere.

import { isIP } from '#platform/resolve-name.ts'

/** What a URL says; null: nothing of that. A host that begins with `/` is a folder with a Unix socket. */
export type StoreUrl = {
  readonly hosts: readonly StoreHost[]
  readonly user: string | null
  readonly password: string | null
  readonly database: string | null
  readonly sslmode: string | null
  readonly sslrootcert: string | null
}

export type StoreHost = { readonly host: string; readonly port: number | null }

const shape =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?#\s]*)(?::(?<password>[^@/?#\s]*))?@)?(?<hosts>[^@/?#\s]*)(?:\/(?<database>[^@/?#\s]*))?(?:\?(?<query>[^?#\s]*))?$/

const parameters = ['host', 'port', 'sslmode', 'sslrootcert', 'target_session_attrs'] as const
type Parameters = Partial<Record<(typeof parameters)[number], string>>

/** A text says what is wrong. */
export const parseStoreUrl = (text: string): StoreUrl | string => {
  const parts = shape.exec(text)?.groups
  if (parts === undefined) {
    return 'is not postgres://USER:PASSWORD@HOST:PORT/DATABASE (anything but letters and digits in the password is written %XX)'
  }
  const [user, password, database] = [parts['user'], parts['password'], parts['database']].map(decodedOrNull)
  if (user === undefined || password === undefined || database === undefined) return badEscape
  const query = readQuery(parts['query'] ?? '')
  if (typeof query === 'string') return query
  const hosts = hostsOf(parts['hosts'] ?? '', query)
  if (typeof hosts === 'string') return hosts
  const { sslmode = null, sslrootcert = null } = query
  return { hosts, user, password, database, sslmode, sslrootcert }
}

const badEscape = 'has a % that is not followed by two hexadecimal digits of UTF-8'

/** Undefined: it cannot be decoded. */
const decoded = (text: string): string | undefined => {
  try {
    const plain = decodeURIComponent(text)
    return plain.includes('\0') ? undefined : plain
  } catch {
    return undefined
  }
}

const decodedOrNull = (text: string | undefined): string | null | undefined =>
  text === undefined || text === '' ? null : decoded(text)

const readQuery = (text: string): Parameters | string => {
  const found: Parameters = {}
  for (const pair of text === '' ? [] : text.split('&')) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair) ?? []
    const known = parameters.find((one) => one === name)
    if (known === undefined) return `has a parameter that is not known here: ${parameters.join(', ')} are`
    if (found[known] !== undefined) return `has the parameter ${known} twice`
    const plain = decoded(value)
    if (plain === undefined) return badEscape
    found[known] = plain
  }
  const attributes = found.target_session_attrs ?? 'read-write'
  // Nothing else is ever used, so there is nothing else to ask for.
  if (attributes !== 'read-write' && attributes !== 'primary') {
    return 'asks for servers that are not the primary (target_session_attrs): decisions never read a standby'
  }
  return found
}

const hostsOf = (text: string, query: Parameters): readonly StoreHost[] | string => {
  if (text !== '' && (query.host !== undefined || query.port !== undefined)) {
    return 'names its hosts twice, in the address and as a parameter'
  }
  if (text === '') return listedHosts(query.host ?? '', query.port ?? '')
  const hosts = text.split(',').map(hostAndPort)
  const wrong = hosts.find((one) => typeof one === 'string')
  return wrong ?? hosts.filter((one) => typeof one !== 'string')
}

const hostAndPort = (text: string): StoreHost | string => {
  const [, bracketed, plain, portText] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d*))?$/.exec(text) ?? []
  const host = decoded(bracketed ?? plain ?? '')
  if (host === undefined) return badEscape
  const port = portText === undefined || portText === '' ? null : portOf(portText)
  if (port === undefined) return badPort
  const isHost = bracketed === undefined ? isHostOrFolder(host) : isIP(host)
  return isHost ? { host, port } : badHost
}

const badPort = 'has a port that is not a number from 1 to 65535'
const badHost = 'has a host that is neither a name nor an address nor a folder with a socket'

const portOf = (text: string): number | undefined => {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}

const isHostOrFolder = (host: string): boolean =>
  host.startsWith('/') || isIP(host) || /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})$/.test(host)

/** As PGHOST and PGPORT list them: one port for all hosts, or one for each. */
export const listedHosts = (hostText: string, portText: string): readonly StoreHost[] | string => {
  if (hostText === '') return []
  const hosts = hostText.split(',')
  const ports = portText === '' ? [''] : portText.split(',')
  if (ports.length !== 1 && ports.length !== hosts.length) return 'lists another number of ports than of hosts'
  if (!hosts.every(isHostOrFolder)) return badHost
  const numbers = ports.map((text) => (text === '' ? null : portOf(text)))
  if (numbers.includes(undefined)) return badPort
  return hosts.map((host, at) => ({ host, port: (ports.length === 1 ? numbers[0] : numbers[at]) ?? null }))
}
