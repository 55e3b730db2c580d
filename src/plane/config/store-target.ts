// Where the database of a plane on PostgreSQL is. Never from the command line, which every user of the machine can read: from the
// file named in MUSTER_STORE_FILE, or from the variables and the password file of PostgreSQL's own programs.

import * as path from 'node:path'
import { othersMayRead, readShortFile } from '#platform/files.ts'
import type { PostgresHost, PostgresTarget } from '#platform/postgres.ts'
import { userName } from '#platform/this-process.ts'
import { allFromPem } from '#pki/pem.ts'
import { passwordIn } from './pgpass.ts'
import { listedHosts, parseStoreUrl, type StoreUrl } from './store-url.ts'

type Env = Readonly<Record<string, string | undefined>>

/** Where a text may be the answer, too. */
type Problem = { readonly problem: string }

const usualPort = 5432
const longestFile = 64 * 1024

/** A text says what is wrong, and repeats nothing that may be secret. */
export const storeTarget = (env: Env): PostgresTarget | string => {
  const given = env['MUSTER_STORE_FILE'] === undefined ? fromVariables(env) : readUrl(env, env['MUSTER_STORE_FILE'])
  if (typeof given === 'string') return given
  if (given.hosts.length === 0) {
    return 'PostgreSQL is selected without an address: set MUSTER_STORE_FILE=FILE with postgres://USER:PASSWORD@HOST:PORT/DATABASE in it (chmod 600), or PGHOST, PGUSER, PGDATABASE and PGPASSFILE'
  }
  const hosts = given.hosts.map(({ host, port }) => ({ host, port: port ?? usualPort }))
  const tls = tlsFor(hosts, given.sslmode ?? env['PGSSLMODE'] ?? null)
  if (typeof tls === 'object') return tls.problem
  const ca = tls === 'none' ? null : readRoots(given.sslrootcert ?? env['PGSSLROOTCERT'] ?? null)
  if (typeof ca === 'object' && ca !== null) return ca.problem
  const user = given.user ?? env['PGUSER'] ?? userName()
  const database = given.database ?? env['PGDATABASE'] ?? user
  const password = passwordFor(env, { database, user })
  if (typeof password === 'string') return password
  return { hosts, database, user, password, tls: tls === 'none' ? null : { ca } }
}

const fromVariables = (env: Env): StoreUrl | string => {
  const unread = ['PGSERVICE', 'PGHOSTADDR'].find((name) => env[name] !== undefined)
  if (unread !== undefined) return `${unread} is not read here: give PGHOST, or MUSTER_STORE_FILE`
  const hosts = listedHosts(env['PGHOST'] ?? '', env['PGPORT'] ?? '')
  if (typeof hosts === 'string') return `PGHOST with PGPORT ${hosts}`
  return { hosts, user: null, password: null, database: null, sslmode: null, sslrootcert: null }
}

const readUrl = (env: Env, file: string): StoreUrl | string => {
  const text = readSecret(env, 'MUSTER_STORE_FILE', file)
  if (typeof text === 'string') return text
  if (text === null) return `MUSTER_STORE_FILE: there is no file ${file}`
  const [line = '', ...more] = text.content.trim().split(/\r?\n/)
  // With both an old and a new address configured, the plane would connect to either without a warning.
  if (more.length > 0)
    return `${file} (MUSTER_STORE_FILE) has more than one line: it holds one address and nothing else`
  const url = parseStoreUrl(line)
  return typeof url === 'string' ? `what is in ${file} (MUSTER_STORE_FILE) ${url}` : url
}

type Content = { readonly content: string }

/** Null: there is none. systemd hands credentials to one user by other means than the mode, and only to that one. */
const readSecret = (env: Env, variable: string, file: string): Content | null | string => {
  const read = readable(file, longestFile)
  if (read === null) return null
  if (read === 'unreadable') return `${variable}: ${file} cannot be read here, or is no file`
  if (read === 'too-long') return `${variable}: ${file} is too long`
  const credentials = env['CREDENTIALS_DIRECTORY']
  const byCredential = credentials !== undefined && path.dirname(path.resolve(file)) === path.resolve(credentials)
  if (!byCredential && othersMayRead(file)) return `others may read ${file} (${variable}): chmod 600`
  return { content: read.text }
}

const readable = (file: string, longest: number): ReturnType<typeof readShortFile> | 'unreadable' => {
  try {
    return readShortFile(file, longest)
  } catch {
    return 'unreadable'
  }
}

/**
 * A connection that leaves this machine is encrypted to a server whose name was verified: an attacker who poses as the database
 * could admit any machine.
 */
export const tlsFor = (hosts: readonly PostgresHost[], sslmode: string | null): 'verified' | 'none' | Problem => {
  const modes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full']
  if (sslmode !== null && !modes.includes(sslmode)) return { problem: `sslmode is one of ${modes.join(', ')}` }
  if (sslmode === 'verify-full') return 'verified'
  if (hosts.every(({ host }) => host.startsWith('/'))) return 'none'
  const plainWillDo = sslmode === null || ['disable', 'allow', 'prefer'].includes(sslmode)
  if (plainWillDo && hosts.every(({ host }) => isLocal(host))) return 'none'
  if (sslmode === null) return 'verified'
  const why = plainWillDo ? 'does not insist on TLS' : "does not check the server's name"
  return {
    problem: `sslmode=${sslmode} ${why}, and an attacker who poses as the database could admit any machine: use sslmode=verify-full with sslrootcert=FILE (without TLS only a Unix socket or a loopback address will do)`,
  }
}

const isLocal = (host: string): boolean =>
  host.startsWith('/') || host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)

/** Null: those of the system. */
const readRoots = (file: string | null): string | null | Problem => {
  if (file === null || file === 'system') return null
  const read = readable(file, 1024 * 1024)
  const pem = read === null || typeof read === 'string' ? null : read.text
  if (pem === null || allFromPem('CERTIFICATE', pem) === null) {
    return { problem: `sslrootcert: ${file} holds no certificates in PEM, or something besides` }
  }
  return pem
}

/** Looked up at every connection, so that a changed password needs no restart. */
const passwordFor = (
  env: Env,
  { database, user }: Pick<PostgresTarget, 'database' | 'user'>,
): PostgresTarget['password'] | string => {
  const find = (at: PostgresHost): string | null | Problem => {
    const file = env['MUSTER_STORE_FILE']
    const url = file === undefined ? null : readUrl(env, file)
    if (typeof url === 'string') return { problem: url }
    const said = url?.password ?? env['PGPASSWORD'] ?? null
    return said ?? inPassfile(env, { ...at, database, user })
  }
  const tried = find({ host: '/', port: usualPort })
  if (typeof tried === 'object' && tried !== null) return tried.problem
  return async (at) => {
    const found = find(at)
    if (typeof found === 'object' && found !== null) throw new Error(found.problem)
    return found
  }
}

const inPassfile = (env: Env, question: Parameters<typeof passwordIn>[1]): string | null | Problem => {
  const named = env['PGPASSFILE']
  const file = named ?? (env['HOME'] === undefined ? null : path.join(env['HOME'], '.pgpass'))
  if (file === null) return null
  const text = readSecret(env, named === undefined ? '~/.pgpass' : 'PGPASSFILE', file)
  if (typeof text === 'string') return { problem: text }
  if (text === null) return named === undefined ? null : { problem: `PGPASSFILE: there is no file ${file}` }
  return passwordIn(text.content, question)
}
