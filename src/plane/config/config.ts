// How a plane is set up: options first, then environment variables, then a settings file, then defaults; parsed once into a complete
// value.

import * as path from 'node:path'
import {
  asEnvironment,
  isProblem,
  resolveSettings,
  type FileSettings,
  type Given,
  type Problem,
  type Values,
} from '#platform/given-settings.ts'
import type { Network } from '#platform/ip-address.ts'
import type { LogFormat } from '#platform/log-text.ts'
import type { PostgresTarget } from '#platform/postgres.ts'
import { isIP } from '#platform/resolve-name.ts'
import { optionName } from '#platform/setting.ts'
import { noSettingsFile, readSettingsFile } from '#platform/settings-file.ts'
import { processors, programFolder } from '#platform/this-process.ts'
import { leadsToItself } from '#wire/core/join-string.ts'
import { loopbackAddress } from '#plane/http/host-rule.ts'
import { webhookTarget, type WebhookTarget } from '#plane/webhook/webhook-target.ts'
import { keyPlacesIn, type KeyPlaces } from './key-settings.ts'
import { planeSettings, usualPlaneFile, type ListenAddress } from './settings.ts'
import { storeTarget } from './store-target.ts'

export type StoreChoice = { readonly kind: 'sqlite' } | { readonly kind: 'postgres'; readonly target: PostgresTarget }

export type PlaneConfig = KeyPlaces & {
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
  /** A thread checks the proofs in certificate requests. It is worth its hand-over where it has a processor that no other thread needs. */
  readonly proofThread: boolean
  /** What machines are handed. */
  readonly handedOut: {
    /** Of these folders the first that is there has the agents. */
    readonly agents: readonly string[]
    /** The folder of the files that tasks ask for; null: there are none. */
    readonly taskFiles: string | null
  }
  /** Names and addresses of the server certificates; nodes get the first as the plane's address. */
  readonly serverNames: readonly string[]
  readonly issuerKey: 'file' | 'memory'
  readonly sealKeyFile: string | null
  /** systemd's $CREDENTIALS_DIRECTORY. */
  readonly credentialsFolder: string | null
  /** The file of the certificate of a root that was made elsewhere. */
  readonly rootCertificateFile: string | null
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
  readonly logFormat: LogFormat
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

export type PlaneValues = Values<typeof planeSettings>

export type GivenConfig = {
  /** Null: there is none. */
  readonly file: FileSettings | null
  /** Null where there is a problem. */
  readonly config: PlaneConfig | null
  readonly values: PlaneValues
  /** Sentences without their full stop, all that are known. */
  readonly problems: readonly string[]
}

/** Option names are those of the command line in camel case. Throws `ConfigProblem`, which names the first that is wrong. */
export const planeConfig = (options: Options, env: Env, file: FileSettings | null = null): PlaneConfig =>
  usableConfig(givenConfig({ options, env, file }))

const fileVariable = 'MUSTER_CONFIG'

/** As a command starts: with the file that `--config` or MUSTER_CONFIG names, else the one in the usual place, if it is there. */
export const readGivenConfig = (options: Options, env: Env): GivenConfig => {
  const named = typeof options['config'] === 'string' ? options['config'] : env[fileVariable]
  return givenConfig({ options, env, file: readSettingsFile(named, usualPlaneFile, planeSettings) })
}

export const readPlaneConfig = (options: Options, env: Env): PlaneConfig => usableConfig(readGivenConfig(options, env))

export const usableConfig = ({ config, problems }: GivenConfig): PlaneConfig => {
  if (config === null) throw new ConfigProblem(problems[0] ?? 'the configuration cannot be used')
  return config
}

const givenConfig = (given: Given): GivenConfig => {
  const { file } = given
  const { values, problems: wrong } = resolveSettings(planeSettings, given)
  if (wrong.length > 0) return { config: null, values, problems: wrong, file }
  const problems: string[] = []
  const usable = <T>(made: T | Problem): T | null => {
    if (!isProblem(made)) return made
    problems.push(made.problem)
    return null
  }
  const store = usable(storeChoice(values, given.env))
  const listeners = listenersIn(values)
  usable(samePort(values, listeners))
  usable(openToOthers(values))
  usable(replicasOnOneFile(values))
  usable(oneRoot(values))
  const keyPlaces = usable(keyPlacesIn(values))
  const alertWebhook = usable(webhookIn(values))
  if (store === null || keyPlaces === null || problems.length > 0) return { config: null, values, problems, file }
  const replica = store.kind === 'postgres' ? replicaNumber(given.env[replicaVariable]) : null
  // Replicas on one machine share its processors already.
  const forThreads = replica === null ? processors() - 1 : 0
  // One shakes hands about as fast as the main thread decides.
  const tlsThreads = values.tlsThreads.value ?? Math.min(1, forThreads)
  const dataFolder = path.resolve(values.data.value)
  const config: PlaneConfig = {
    dataFolder,
    store,
    replicas: values.replicas.value,
    replica,
    domainName: values.domain.value,
    ...listeners,
    statusUrl: values.statusUrl.value,
    operatorTls: values.operatorTls.value,
    proxyFrom: values.proxyFrom.value,
    connectionsPerSource: values.connectionsPerSource.value,
    tlsThreads,
    proofThread: forThreads > tlsThreads,
    handedOut: { agents: agentFolders(values.agents.value, dataFolder), taskFiles: values.taskFiles.value },
    serverNames: values.serverName.value,
    issuerKey: values.issuerKey.value,
    sealKeyFile: values.sealKey.value,
    credentialsFolder: given.env['CREDENTIALS_DIRECTORY'] ?? null,
    ...keyPlaces,
    rootCertificateFile: values.rootCertificate.value,
    rootOut: values.rootOut.value,
    rootPathLen: values.rootPathLength.value === 1 ? 1 : 2,
    rootLifetimeMs: values.rootLifetime.value,
    intermediateLifetimeMs: values.intermediateLifetime.value,
    serverCertificateLifetimeMs: values.serverLifetime.value,
    clockToleranceMs: values.clockTolerance.value,
    alertWebhook,
    nodeMetrics: values.nodeMetrics.value,
    logLevel: values.logLevel.value,
    logFormat: values.log.value,
  }
  return { config, values, problems, file }
}

/** For replicas that `--replicas` starts: they have the values of this process, also when its file is changed meanwhile. */
export const planeEnvironment = (values: PlaneValues): Readonly<Record<string, string>> => ({
  ...asEnvironment(planeSettings, values),
  [fileVariable]: noSettingsFile,
})

const storeChoice = ({ store, storeFile }: PlaneValues, env: Env): StoreChoice | Problem => {
  if (store.value === 'sqlite') return { kind: 'sqlite' }
  const target = storeTarget(storeFile.value === null ? env : { ...env, MUSTER_STORE_FILE: storeFile.value })
  return typeof target === 'string' ? { problem: target } : { kind: 'postgres', target }
}

/** Set only by `muster plane --replicas`, for the processes it starts. */
export const replicaVariable = 'MUSTER_REPLICA'

const replicasOnOneFile = ({ replicas, store }: PlaneValues): Problem | null =>
  replicas.value > 1 && store.value === 'sqlite'
    ? { problem: `${replicas.label} needs --store postgres: the embedded store has one plane` }
    : null

const oneRoot = ({ root, rootOut, rootCertificate }: PlaneValues): Problem | null => {
  const [given, other] = [root, rootOut, rootCertificate].filter(({ value }) => value !== null)
  return given === undefined || other === undefined
    ? null
    : { problem: `${given.label} and ${other.label} say two things about the key of the root: leave one of them out` }
}

const replicaNumber = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,2}$/.test(text) ? Number(text) : null

const listenerNames = ['nodeListen', 'recoveryListen', 'operatorListen', 'statusListen'] as const

type Listeners = Pick<PlaneConfig, (typeof listenerNames)[number]>

/** Every address it listens on, with the option that says so. */
export const listenersOf = (
  config: Listeners,
): readonly { readonly option: string; readonly listen: ListenAddress }[] =>
  listenerNames.flatMap((name) => {
    const listen = config[name]
    return listen === null ? [] : [{ option: optionName(name), listen }]
  })

const everyAddress = ['0.0.0.0', '::']

/** Where nodes connect they must be able to recover, also with a plane that was set up before there was recovery. */
const listenersIn = (values: PlaneValues): Listeners => {
  const nodeListen = values.nodeListen.value
  const statusListen = values.statusListen.value
  return {
    nodeListen,
    recoveryListen: values.recoveryListen.value ?? { host: nodeListen.host, port: 8442 },
    operatorListen: values.operatorListen.value,
    statusListen: statusListen === 'off' ? null : statusListen,
  }
}

/** Said before anything is made: the second of them could never listen. */
const samePort = (values: PlaneValues, listeners: Listeners): Problem | null => {
  const all = listenerNames.flatMap((name) => {
    const listen = listeners[name]
    return listen === null || listen.port === 0 ? [] : [{ label: values[name].label, listen }]
  })
  for (const [index, { label, listen }] of all.entries()) {
    const other = all
      .slice(index + 1)
      .filter(({ listen: { port } }) => port === listen.port)
      .find(
        ({ listen: { host } }) => host === listen.host || [host, listen.host].some((one) => everyAddress.includes(one)),
      )
    if (other === undefined) continue
    const [one, two] = [listen, other.listen].map(({ host, port }) => `${host}:${port}`)
    return { problem: `${label} ${one} and ${other.label} ${two} are the same port: each listener needs its own` }
  }
  return null
}

/** Said before anything is made: keys of operators would cross the network in the clear. */
const openToOthers = ({ operatorListen, operatorTls }: PlaneValues): Problem | null => {
  if (operatorTls.value || loopbackAddress(operatorListen.value.host) !== null) return null
  const remedy = operatorListen.source.from === 'file' ? 'operator_tls = true' : '--operator-tls'
  const given = operatorListen.texts?.join(', ') ?? ''
  return { problem: `${operatorListen.label} ${given} can be reached from other machines: add ${remedy}` }
}

const webhookIn = (values: PlaneValues): WebhookTarget | null | Problem => {
  const target = webhookTarget({
    url: values.alertWebhook.value,
    secretFile: values.alertWebhookSecretFile.value,
    caFile: values.alertWebhookCa.value,
    networks: values.alertWebhookNetwork.value,
  })
  return typeof target === 'string' ? { problem: target } : target
}

/** In the data folder, beside the executable, or where the package of the plane puts them. */
const agentFolders = (given: string | null, dataFolder: string): readonly string[] =>
  given === null
    ? [path.join(dataFolder, 'agents'), path.join(programFolder(), 'agents'), '/usr/share/muster/agents']
    : [path.resolve(given)]

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
