// Which plane a command talks to, and with which key: decided from options, environment and the settings file of a plane here.

import type { HttpTarget } from '#platform/http-client.ts'
import { pathInSettingsFile } from '#platform/settings-file.ts'
import type { GlobalOptions } from './cli.ts'
import { usageFailure } from './failure.ts'

export type Connection = {
  readonly where:
    | { readonly kind: 'socket'; readonly socketPath: string; readonly dataFolder: string }
    | {
        readonly kind: 'url'
        readonly url: string
        readonly tls: boolean
        readonly host: string
        readonly port: number
      }
  readonly caFile: string | null
  readonly keyFile: string
}

type Env = Readonly<Record<string, string | undefined>>

export const defaultDataFolder = './data'

/** As the settings of a plane name it (plane/config/settings.ts). */
export const usualPlaneFile = '/etc/muster/plane.toml'

const dataFolderOf = (options: Pick<GlobalOptions, 'data'>, env: Env): string =>
  given(options.data, env['MUSTER_DATA']) ??
  pathInSettingsFile(env['MUSTER_CONFIG'], usualPlaneFile, 'data') ??
  defaultDataFolder

export const resolveConnection = (options: GlobalOptions, env: Env): Connection => {
  const url = given(options.url, options.data === undefined ? env['MUSTER_URL'] : undefined)
  const keyFile = given(options.keyFile, env['MUSTER_KEY_FILE'])
  const caFile = given(options.ca, env['MUSTER_CA'])
  if (url === null) {
    const dataFolder = dataFolderOf(options, env)
    return {
      where: { kind: 'socket', socketPath: `${dataFolder}/run/operator.sock`, dataFolder },
      caFile: null,
      keyFile: keyFile ?? `${dataFolder}/admin.key`,
    }
  }
  // The key of a local data folder is never sent to an address given on the command line.
  if (keyFile === null)
    throw usageFailure('--url needs an operator key.', 'Pass --key-file FILE or set MUSTER_KEY_FILE')
  return { where: addressOf(url), caFile, keyFile }
}

const addressOf = (text: string): Connection['where'] => {
  const url = URL.parse(text)
  if (url === null || !['https:', 'http:'].includes(url.protocol)) {
    throw usageFailure(`Not an address of a plane: ${text}`, 'Give --url https://HOST:PORT')
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '' || url.pathname !== '/') {
    throw usageFailure('The address of a plane is scheme, host and port only.', 'Give --url https://HOST:PORT')
  }
  const tls = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (!tls && !isLoopback(host)) {
    throw usageFailure('Without TLS only a plane on this machine is called.', `Give --url https://${url.host}`)
  }
  return { kind: 'url', url: url.origin, tls, host, port: Number(url.port) || (tls ? 443 : 80) }
}

/** Names are not looked up: only addresses that cannot leave this machine count. */
const isLoopback = (host: string): boolean => host === '::1' || host === 'localhost' || /^127(\.\d{1,3}){3}$/.test(host)

export const targetOf = (connection: Connection, caPem: string | null): HttpTarget => {
  const { where } = connection
  if (where.kind === 'socket') return { kind: 'unix', socketPath: where.socketPath }
  return where.tls
    ? { kind: 'https', host: where.host, port: where.port, ca: caPem }
    : { kind: 'http', host: where.host, port: where.port }
}

const given = (option: string | undefined, variable: string | undefined): string | null =>
  option ?? (variable === undefined || variable === '' ? null : variable)
