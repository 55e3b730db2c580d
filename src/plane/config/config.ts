// How a plane is set up: options first, then environment variables, then defaults; parsed once into a complete value.

import * as path from 'node:path'
import type { Network } from '#platform/ip-address.ts'
import { isIP } from '#platform/resolve-name.ts'
import { processors } from '#platform/this-process.ts'
import { parseDuration } from '#wire/core/duration.ts'
import { domainNameShape, leadsToItself } from '#wire/core/join-string.ts'
import { loopbackAddress } from '#plane/http/host-rule.ts'
import { proxyFrom } from './proxy-from.ts'
import type { PostgresTarget } from '#platform/postgres.ts'
import { storeTarget } from './store-target.ts'
import { webhookTarget, type WebhookTarget } from '#plane/webhook/webhook-target.ts'

export type ListenAddress = { readonly host: string; readonly port: number }

export type StoreChoice = { readonly kind: 'sqlite' } | { readonly kind: 'postgres'; readonly target: PostgresTarget }

export type PlaneConfig = {
  readonly dataFolder: string
  readonly store: StoreChoice
  /** How many processes share the ports; more than one only on PostgreSQL. */
  readonly replicas: number
  /** Which of those this is, where `muster plane --replicas` started it; null: it was not. */
  readonly replica: number | null
  /** The trust domain. Used at the first start only: after that the store knows it. */
  readonly domainName: string
  readonly nodeListen: ListenAddress
  readonly recoveryListen: ListenAddress
  readonly operatorListen: ListenAddress
  /** Where others ask about our certificates; null: nowhere. */
  readonly statusListen: ListenAddress | null
  /** The public URL of that listener, without a trailing slash; null: certificates do not name it. */
  readonly statusUrl: string | null
  /** The operator listener on TCP speaks TLS; without it only loopback is allowed. */
  readonly operatorTls: boolean
  /** Load balancers, which say by the PROXY protocol whose connections they pass on. */
  readonly proxyFrom: readonly Network[]
  /** Most connections of one source that have proven nothing, on each listener; null: its share of what is free. */
  readonly connectionsPerSource: number | null
  /** Threads that shake hands with machines; 0: the main one does. */
  readonly tlsThreads: number
  /** Names and addresses of the server certificates; nodes get the first as the plane's address. */
  readonly serverNames: readonly string[]
  readonly issuerKey: 'file' | 'memory'
  readonly sealKeyFile: string | null
  /** systemd's $CREDENTIALS_DIRECTORY. */
  readonly credentialsFolder: string | null
  readonly rootOut: string | null
  readonly rootPathLen: 1 | 2
  readonly rootLifetimeMs: number
  readonly intermediateLifetimeMs: number
  readonly serverCertificateLifetimeMs: number
  /** How far this machine's clock may be from the database's. */
  readonly clockToleranceMs: number
  /** Where alerts are delivered to. */
  readonly alertWebhook: WebhookTarget | null
  /** The operator listener shows metrics of single nodes. */
  readonly nodeMetrics: boolean
  readonly logLevel: string
}

/** The configuration cannot be used; says which option, and what it takes. */
export class ConfigProblem extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigProblem'
  }
}

type Options = Readonly<Record<string, unknown>>
type Env = Readonly<Record<string, string | undefined>>

const day = 24 * 3600 * 1000
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

/** Option names are those of the command line in camel case; `nodeListen` falls back to `MUSTER_NODE_LISTEN`. */
export const planeConfig = (options: Options, env: Env): PlaneConfig => {
  const given = (name: string): string | null => {
    const option = options[name]
    if (typeof option === 'string') return option
    return env[environmentName(name)] ?? null
  }
  const oneOf = <T extends string>(name: string, allowed: readonly T[], otherwise: T): T => {
    const text = given(name) ?? otherwise
    const found = allowed.find((one) => one === text)
    if (found === undefined) throw new ConfigProblem(`${optionName(name)} takes ${allowed.join(', ')}, not ${text}`)
    return found
  }
  const duration = (name: string, otherwiseMs: number): number => {
    const text = given(name)
    const ms = text === null ? otherwiseMs : parseDuration(text)
    if (ms === null || ms < 1000)
      throw new ConfigProblem(`${optionName(name)} takes a duration such as 90d, not ${text}`)
    return ms
  }

  const domainName = given('domain') ?? 'muster.local'
  if (!domainNameShape.test(domainName)) throw new ConfigProblem(`--domain takes a DNS name, not ${domainName}`)
  const store = storeChoice(given('store'), env)
  const nodeListen = listenAddress('nodeListen', given('nodeListen') ?? '127.0.0.1:8443')
  const recoveryListen = given('recoveryListen')
  const operatorTls = options['operatorTls'] === true || env['MUSTER_OPERATOR_TLS'] === '1'
  const listeners = {
    nodeListen,
    // Where nodes connect they must be able to recover, also with a plane that was set up before there was recovery.
    recoveryListen:
      recoveryListen === null ? { host: nodeListen.host, port: 8442 } : listenAddress('recoveryListen', recoveryListen),
    operatorListen: operatorAddress(given('operatorListen') ?? '127.0.0.1:8440', operatorTls),
    statusListen: statusAddress(given('statusListen') ?? '127.0.0.1:8446'),
  }
  refuseSamePort(listeners)
  const replica = store.kind === 'postgres' ? replicaNumber(env[replicaVariable]) : null
  return {
    dataFolder: path.resolve(given('data') ?? 'data'),
    store,
    replicas: replicas(given('replicas'), store),
    replica,
    domainName,
    ...listeners,
    statusUrl: statusUrl(given('statusUrl')),
    operatorTls,
    proxyFrom: proxies(options['proxyFrom'], env['MUSTER_PROXY_FROM']),
    connectionsPerSource: connectionsPerSource(given('connectionsPerSource')),
    tlsThreads: tlsThreads(given('tlsThreads'), replica),
    serverNames: serverNames(options['serverName'], env['MUSTER_SERVER_NAME']),
    issuerKey: oneOf('issuerKey', ['file', 'memory'], 'file'),
    sealKeyFile: given('sealKey'),
    credentialsFolder: env['CREDENTIALS_DIRECTORY'] ?? null,
    rootOut: given('rootOut'),
    rootPathLen: oneOf('rootPathLength', ['1', '2'], '2') === '1' ? 1 : 2,
    rootLifetimeMs: duration('rootLifetime', 3653 * day),
    intermediateLifetimeMs: duration('intermediateLifetime', 1826 * day),
    serverCertificateLifetimeMs: duration('serverLifetime', 90 * day),
    clockToleranceMs: duration('clockTolerance', 30_000),
    alertWebhook: alertWebhook(given, options['alertWebhookNetwork'], env['MUSTER_ALERT_WEBHOOK_NETWORK']),
    nodeMetrics: options['nodeMetrics'] === true || env['MUSTER_NODE_METRICS'] === '1',
    logLevel: oneOf('logLevel', logLevels, 'info'),
  }
}

/**
 * The environment with which `muster plane` without any option has the same configuration as this process.
 */
export const asEnvironment = (options: Options): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) => {
      const text = Array.isArray(value) ? value.join(',') : value === true ? '1' : value
      return typeof text === 'string' ? [[environmentName(name), text]] : []
    }),
  )

const environmentName = (name: string): string =>
  `MUSTER_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
const optionName = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** What was given instead is never repeated: it is an address with a password more often than not. */
const notInArguments =
  '--store takes sqlite or postgres and nothing else. Every user of this machine could read an address with a password on a command line: put postgres://USER:PASSWORD@HOST:PORT/DATABASE into a file of mode 0600 and its name into MUSTER_STORE_FILE, or use PGHOST and PGPASSFILE. A password that was given here is to be changed'

const storeChoice = (text: string | null, env: Env): StoreChoice => {
  if (text === null || text === 'sqlite') return { kind: 'sqlite' }
  if (text !== 'postgres') throw new ConfigProblem(notInArguments)
  const target = storeTarget(env)
  if (typeof target === 'string') throw new ConfigProblem(target)
  return { kind: 'postgres', target }
}

const mostReplicas = 64
/** Set only by `muster plane --replicas`, for the processes it starts. */
export const replicaVariable = 'MUSTER_REPLICA'

const replicas = (text: string | null, store: StoreChoice): number => {
  const count = /^\d{1,2}$/.test(text ?? '1') ? Number(text ?? '1') : 0
  if (count < 1 || count > mostReplicas) throw new ConfigProblem(`--replicas takes a number from 1 to ${mostReplicas}`)
  if (count > 1 && store.kind === 'sqlite') {
    throw new ConfigProblem('--replicas needs --store postgres: the embedded store has one plane')
  }
  return count
}

const replicaNumber = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,2}$/.test(text) ? Number(text) : null

const listenAddress = (name: string, text: string): ListenAddress => {
  const [, host, port] = /^(\[[0-9a-fA-F:]+\]|[^:[\]]+):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || port === undefined || Number(port) > 65_535) {
    throw new ConfigProblem(`${optionName(name)} takes HOST:PORT, not ${text}`)
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

type Listeners = Pick<PlaneConfig, 'nodeListen' | 'recoveryListen' | 'operatorListen' | 'statusListen'>

/** Every address it listens on, with the option that says so. */
export const listenersOf = (
  config: Listeners,
): readonly { readonly option: string; readonly listen: ListenAddress }[] =>
  (['nodeListen', 'recoveryListen', 'operatorListen', 'statusListen'] as const).flatMap((name) => {
    const listen = config[name]
    return listen === null ? [] : [{ option: optionName(name), listen }]
  })

const everyAddress = ['0.0.0.0', '::']

/** Said before anything is made: the second of them could never listen. */
const refuseSamePort = (config: Listeners): void => {
  const all = listenersOf(config).filter(({ listen }) => listen.port !== 0)
  for (const [index, { option, listen }] of all.entries()) {
    const other = all
      .slice(index + 1)
      .filter(({ listen: { port } }) => port === listen.port)
      .find(
        ({ listen: { host } }) => host === listen.host || [host, listen.host].some((one) => everyAddress.includes(one)),
      )
    if (other === undefined) continue
    const [one, two] = [listen, other.listen].map(({ host, port }) => `${host}:${port}`)
    throw new ConfigProblem(
      `${option} ${one} and ${other.option} ${two} are the same port: each listener needs its own`,
    )
  }
}

/** Said before anything is made: keys of operators would cross the network in the clear. */
const operatorAddress = (text: string, tls: boolean): ListenAddress => {
  const address = listenAddress('operatorListen', text)
  if (!tls && loopbackAddress(address.host) === null) {
    throw new ConfigProblem(`--operator-listen ${text} can be reached from other machines: add --operator-tls`)
  }
  return address
}

const statusAddress = (text: string): ListenAddress | null =>
  text === 'off' ? null : listenAddress('statusListen', text)

/** It goes into certificates, of which it must not be a large part. */
const longestStatusUrl = 128

const statusUrl = (text: string | null): string | null => {
  if (text === null) return null
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (!isPlain || !['http:', 'https:'].includes(url.protocol) || text.length > longestStatusUrl)
    // Not repeated: it may hold a password.
    throw new ConfigProblem(
      '--status-url takes a URL such as http://status.example.org, without user, query and fragment',
    )
  return url.href.replace(/\/+$/, '')
}

const alertWebhook = (
  given: (name: string) => string | null,
  networks: unknown,
  networksFromEnv: string | undefined,
): WebhookTarget | null => {
  const target = webhookTarget({
    url: given('alertWebhook'),
    secretFile: given('alertWebhookSecretFile'),
    caFile: given('alertWebhookCa'),
    networks: Array.isArray(networks) ? networks.map(String) : (networksFromEnv?.split(',') ?? []),
  })
  if (typeof target === 'string') throw new ConfigProblem(target)
  return target
}

const proxies = (option: unknown, fromEnv: string | undefined): readonly Network[] => {
  const networks = proxyFrom(Array.isArray(option) ? option.map(String) : (fromEnv?.split(',') ?? []))
  if (typeof networks === 'string') throw new ConfigProblem(networks)
  return networks
}

const connectionsPerSource = (text: string | null): number | null => {
  if (text === null) return null
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new ConfigProblem('--connections-per-source takes a number from 1 on')
  return Number(text)
}

const mostTlsThreads = 16

/** By default one, which shakes hands about as fast as the main thread decides; replicas on one machine share its processors already. */
const tlsThreads = (text: string | null, replica: number | null): number => {
  if (text === null) return replica === null && processors() > 1 ? 1 : 0
  if (!/^\d{1,2}$/.test(text) || Number(text) > mostTlsThreads)
    throw new ConfigProblem(`--tls-threads takes a number from 0 to ${mostTlsThreads}`)
  return Number(text)
}

const serverNames = (option: unknown, fromEnv: string | undefined): readonly string[] => {
  const given = Array.isArray(option) ? option.map(String) : (fromEnv?.split(',') ?? [])
  const names = given.length > 0 ? given : ['localhost', '127.0.0.1', '::1']
  const wrong = names.find((name) => !isIP(name) && !domainNameShape.test(name.replace(/^\*\./, '')))
  if (wrong !== undefined) throw new ConfigProblem(`--server-name takes a DNS name or an address, not ${wrong}`)
  return names
}

/** The names of its certificates, and the other hosts of its listeners. */
export const namesConfig = (
  config: Pick<
    PlaneConfig,
    'serverNames' | 'statusUrl' | 'nodeListen' | 'recoveryListen' | 'operatorListen' | 'statusListen'
  >,
) => {
  const { serverNames: names, statusUrl: url } = config
  const hosts = listenersOf(config).map(({ listen }) => listen.host)
  return {
    names: { dns: names.filter((name) => !isIP(name)), ip: names.filter(isIP) },
    host: hostForNodes(config),
    addresses: [
      ...hosts.filter((host) => !everyAddress.includes(host)),
      ...(url === null ? [] : [new URL(url).hostname.replace(/^\[|\]$/g, '')]),
    ],
  }
}

const hostForNodes = ({ serverNames: names }: Pick<PlaneConfig, 'serverNames'>): string =>
  names.find((one) => !one.startsWith('*.')) ?? 'localhost'

/** The address of the plane that nodes get once it listens, on the node or the recovery port. */
export const nodeUrlOf = (config: PlaneConfig, port: number): string => {
  const name = hostForNodes(config)
  return `https://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** A name for other machines, and a listener that only this one reaches: half of what it takes to bring in a second machine. */
export const listenWarning = (config: PlaneConfig): readonly string[] => {
  const { host, port } = config.nodeListen
  const isBehindBalancer = config.proxyFrom.length > 0
  const url = nodeUrlOf(config, port)
  if (isBehindBalancer || loopbackAddress(host) === null || leadsToItself(url)) return []
  return [
    `Nodes are sent to ${url}, and the plane listens on ${host} only: unless something on this machine forwards connections to it, no other machine reaches it. Listen on more addresses: --node-listen 0.0.0.0:${port}`,
  ]
}
