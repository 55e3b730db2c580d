// The configuration of an agent, parsed once into a complete value.

import { keyTypes, type KeyType } from '#domain/core/profile.ts'
import { parseDuration } from '#wire/core/duration.ts'
import { parseJoinString, type JoinString } from '#wire/core/join-string.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'
import type { UnderlayEndpoint } from '#domain/core/wireguard.ts'
import { pinnedRoot } from './pinned-root.ts'
import { wireguardOf } from './wireguard-options.ts'

export type AgentConfig = {
  readonly stateFolder: string
  readonly join: JoinSource
  readonly joinMethod: 'token' | 'hardware'
  readonly keyType: KeyType
  /** `memory`: no key ever reaches the disk, whatever the profile says. */
  readonly keyStorage: 'file' | 'memory'
  /** Read instead of asking the system: for serials only root may read, and for tests. */
  readonly hardwareFile: string | null
  /** The name to ask for with a token of the domain. */
  readonly nodeId: string | null
  /** The recovery credential to register at enrollment, for the time when the certificate no longer works. */
  readonly recovery: 'key' | 'bearer' | 'none'
  /** From the image: lets the machine through to the plane where a network asks for a certificate. Never an identity. */
  readonly bootstrap: { readonly certificateFile: string; readonly keyFile: string } | null
  /** Where the metrics are shown to this machine; null: nowhere. */
  readonly metricsListen: { readonly host: string; readonly port: number } | null
  readonly reportEveryMs: number
  /** Instead of what the profile says. */
  readonly rehearseEveryMs: number | null
  /** This node's part in the WireGuard network; null: none. `endpoint`: where others reach it; null: no peer connects to it first. */
  readonly wireguard: { readonly interface: string; readonly endpoint: UnderlayEndpoint | null } | null
  /** Where the outputs of this node are written without a helper; null: nowhere. */
  readonly publish: string | null
  /** The host's own file of what its agent may do, which names its reloads; null: in its usual place, as below. */
  readonly agentToml: string | null
  /** Where the helper is reached. */
  readonly helperSocket: string | null
  /** Fingerprint of the only root a join string may name; null: any. */
  readonly pinnedRoot: string | null
  readonly logLevel: string
}

export type JoinSource =
  /** Handed over at start; a token in it works once. `envFile`: the environment file it came from, if that is known. */
  | { readonly kind: 'given'; readonly join: JoinString; readonly envFile: string | null }
  /** Read when it is needed, so that an operator can put a new one there. Ours: deleted once its token is used. */
  | { readonly kind: 'file'; readonly path: string }

/** As they come from the command line. */
export type AgentOptions = {
  readonly state?: string | undefined
  readonly joinFile?: string | undefined
  readonly joinMethod?: string | undefined
  readonly keyType?: string | undefined
  readonly keyStorage?: string | undefined
  readonly hardwareFile?: string | undefined
  readonly nodeId?: string | undefined
  readonly recovery?: string | undefined
  readonly staticCertificate?: string | undefined
  readonly staticKey?: string | undefined
  readonly metricsListen?: string | undefined
  readonly reportEvery?: string | undefined
  readonly rehearseEvery?: string | undefined
  readonly wireguard?: string | undefined
  readonly wireguardEndpoint?: readonly string[] | undefined
  readonly publish?: string | undefined
  readonly agentToml?: string | undefined
  readonly helperSocket?: string | undefined
  readonly logLevel?: string | undefined
}

type Env = Readonly<Record<string, string | undefined>>

export type ParsedConfig =
  { readonly kind: 'config'; readonly config: AgentConfig } | { readonly kind: 'invalid'; readonly why: string }

const defaultJoinFile = '/etc/muster/join'
export const defaultStateFolder = '/var/lib/muster-agent'
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** `readJoin` reads a file, or standard input for `-`; null when there is no such file. */
export const agentConfig = async (
  options: AgentOptions,
  env: Env,
  readJoin: (place: string) => Promise<string | null>,
  pinned: string | null = pinnedRoot,
): Promise<ParsedConfig> => {
  const found = await joinSource(options, env, readJoin)
  if (found.kind === 'invalid') return found
  const method = options.joinMethod ?? found.method
  if (method !== 'token' && method !== 'hardware') return invalid('--join-method takes token or hardware')
  const keyType = keyTypes.find((type) => type === (options.keyType ?? 'p256'))
  if (keyType === undefined) return invalid(`--key-type takes ${keyTypes.join(', ')}`)
  const keyStorage = options.keyStorage ?? (method === 'hardware' ? 'memory' : 'file')
  if (keyStorage !== 'file' && keyStorage !== 'memory') return invalid('--key-storage takes file or memory')
  const nodeId = options.nodeId ?? null
  if (nodeId !== null && !new RegExp(nodeIdShape).test(nodeId)) {
    return invalid('--node-id takes lower-case letters, digits, dots, dashes and underscores, at most 63')
  }
  const logLevel = options.logLevel ?? env['MUSTER_LOG_LEVEL'] ?? 'info'
  if (!logLevels.includes(logLevel)) return invalid(`--log-level takes ${logLevels.join(', ')}`)
  if (found.source.kind === 'given' && isOfAnotherRoot(found.source.join, pinned)) return invalid(anotherRoot)
  const recovery = recoveryOf(options.recovery ?? env['MUSTER_RECOVERY'], keyStorage)
  if (recovery === null) return invalid('--recovery takes key, bearer or none; with keys in memory only none')
  const bootstrap = bootstrapOf(options, env)
  if (bootstrap === 'half') return invalid('--static-certificate and --static-key are given together or not at all')
  const metricsListen = loopbackOf(options.metricsListen ?? env['MUSTER_METRICS_LISTEN'])
  if (metricsListen === 'wrong') return invalid('--metrics-listen takes a loopback address and a port: 127.0.0.1:9464')
  const reportEveryMs = everyOf(options.reportEvery ?? env['MUSTER_REPORT_EVERY'] ?? '60s', 50)
  if (reportEveryMs === null) return invalid('--report-every takes a duration between 50ms and 24d')
  const rehearseEvery = options.rehearseEvery ?? env['MUSTER_REHEARSE_EVERY']
  const rehearseEveryMs = rehearseEvery === undefined ? null : everyOf(rehearseEvery, 1_000)
  if (rehearseEvery !== undefined && rehearseEveryMs === null)
    return invalid('--rehearse-every takes a duration between 1s and 24d')
  const wireguard = wireguardOf(options, env)
  if (wireguard.kind === 'invalid') return wireguard
  return {
    kind: 'config',
    config: {
      // STATE_DIRECTORY is how systemd says where it made the folder.
      stateFolder: options.state ?? env['MUSTER_AGENT_STATE'] ?? env['STATE_DIRECTORY'] ?? defaultStateFolder,
      join: found.source,
      joinMethod: method,
      keyType,
      keyStorage,
      hardwareFile: options.hardwareFile ?? env['MUSTER_HARDWARE_FILE'] ?? null,
      nodeId,
      recovery,
      bootstrap,
      metricsListen,
      reportEveryMs,
      rehearseEveryMs,
      wireguard: wireguard.wireguard,
      publish: options.publish ?? env['MUSTER_AGENT_PUBLISH'] ?? null,
      agentToml: options.agentToml ?? env['MUSTER_AGENT_TOML'] ?? null,
      helperSocket: options.helperSocket ?? env['MUSTER_HELPER_SOCKET'] ?? null,
      pinnedRoot: pinned,
      logLevel,
    },
  }
}

export const isOfAnotherRoot = (join: JoinString, pinned: string | null): boolean =>
  pinned !== null && join.rootFingerprint !== pinned

export const anotherRoot = 'the join string is for another root than the one this agent was built for'

/** A recovery key beside a key that must not reach the disk would be the same key by another name. */
const recoveryOf = (
  text: string | undefined,
  keyStorage: AgentConfig['keyStorage'],
): AgentConfig['recovery'] | null => {
  if (keyStorage === 'memory') return text === undefined || text === 'none' ? 'none' : null
  const wanted = text ?? 'key'
  return wanted === 'key' || wanted === 'bearer' || wanted === 'none' ? wanted : null
}

const bootstrapOf = (options: AgentOptions, env: Env): AgentConfig['bootstrap'] | 'half' => {
  const certificateFile = options.staticCertificate ?? env['MUSTER_STATIC_CERTIFICATE']
  const keyFile = options.staticKey ?? env['MUSTER_STATIC_KEY']
  if (certificateFile === undefined && keyFile === undefined) return null
  return certificateFile === undefined || keyFile === undefined ? 'half' : { certificateFile, keyFile }
}

/** Metrics are served on loopback only: every host on the network could read them otherwise. */
const loopbackOf = (text: string | undefined): AgentConfig['metricsListen'] | 'wrong' => {
  if (text === undefined) return null
  const [, host, port] = /^(127(?:\.\d{1,3}){3}|\[::1\]|localhost):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || port === undefined || Number(port) > 65_535) return 'wrong'
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

const longestEveryMs = 24 * 86_400_000

const everyOf = (text: string, shortestMs: number): number | null => {
  const ms = parseDuration(text)
  return ms === null || ms < shortestMs || ms > longestEveryMs ? null : ms
}

type FoundJoin = { readonly kind: 'found'; readonly source: JoinSource; readonly method: 'token' | 'hardware' }

const joinSource = async (
  options: AgentOptions,
  env: Env,
  readJoin: (place: string) => Promise<string | null>,
): Promise<FoundJoin | { kind: 'invalid'; why: string }> => {
  if (options.joinFile === '-') return given(parseJoinFile((await readJoin('-')) ?? ''), 'standard input')
  const inEnvironment = env['MUSTER_JOIN'] ?? ''
  if (options.joinFile === undefined && inEnvironment !== '') {
    return given(parseJoinString(inEnvironment), 'MUSTER_JOIN', env['MUSTER_JOIN_ENV_FILE'] ?? null)
  }
  const path = options.joinFile ?? defaultJoinFile
  // A file that is gone or damaged is no trouble while there is an identity; enrolling without one says so then.
  const join = parseJoinFile((await readJoin(path)) ?? '')
  return { kind: 'found', source: { kind: 'file', path }, method: methodOf(join) }
}

const given = (
  join: JoinString | null,
  place: string,
  envFile: string | null = null,
): FoundJoin | { kind: 'invalid'; why: string } => {
  if (join === null) return invalid(`there is no join string in ${place}; muster token create prints one`)
  return { kind: 'found', source: { kind: 'given', join, envFile }, method: methodOf(join) }
}

/** A join string alone, or the environment file of a bundle with one in it. */
export const parseJoinFile = (text: string): JoinString | null => {
  const inEnvFile = text.split('\n').find((line) => line.startsWith('MUSTER_JOIN='))
  return parseJoinString(inEnvFile === undefined ? text : inEnvFile.slice('MUSTER_JOIN='.length))
}

const methodOf = (join: JoinString | null): 'token' | 'hardware' =>
  join !== null && join.secret === null ? 'hardware' : 'token'

const invalid = (why: string): { kind: 'invalid'; why: string } => ({ kind: 'invalid', why })
