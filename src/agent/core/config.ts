// The configuration of an agent, parsed once into a complete value.

import type { KeyType } from '#domain/core/profile.ts'
import type { UnderlayEndpoint } from '#domain/core/wireguard.ts'
import { isProblem, resolveSettings, type FileSettings, type Given, type Problem } from '#platform/given-settings.ts'
import type { LogFormat } from '#platform/log-text.ts'
import { readSettingsFile } from '#platform/settings-file.ts'
import { parseJoinString, type JoinString } from '#wire/core/join-string.ts'
import { pinnedRoot } from './pinned-root.ts'
import { agentSettings, defaultStateFolder, usualAgentFile, type AgentOptions, type AgentValues } from './settings.ts'
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
  readonly logFormat: LogFormat
}

export type JoinSource =
  /** Handed over at start; a token in it works once. `envFile`: the environment file it came from, if that is known. */
  | { readonly kind: 'given'; readonly join: JoinString; readonly envFile: string | null }
  /** Read when it is needed, so that an operator can put a new one there. Ours: deleted once its token is used. */
  | { readonly kind: 'file'; readonly path: string }

type Env = Readonly<Record<string, string | undefined>>

export type ParsedConfig =
  { readonly kind: 'config'; readonly config: AgentConfig } | { readonly kind: 'invalid'; readonly why: string }

/** What was given, and the configuration that follows from it. */
export type GivenAgentConfig = {
  readonly values: AgentValues
  /** Null: there is none. */
  readonly file: FileSettings | null
  /** Null where there is a problem. */
  readonly config: AgentConfig | null
  /** Sentences without their full stop, all that are known. */
  readonly problems: readonly string[]
}

/** Reads a file, or standard input for `-`; null when there is no such file. */
export type ReadJoin = (place: string) => Promise<string | null>

const fileVariable = 'MUSTER_AGENT_CONFIG'

/** Agents of 0.4 had no such file, and run as their own user beside an /etc/muster of root alone: after an upgrade they have to start. */
const readAgentFile = (named: string | undefined): FileSettings | null =>
  readSettingsFile(named, usualAgentFile, agentSettings, 'has no file')

/** As a command starts: with the file that `--config` or MUSTER_AGENT_CONFIG names, else the one in the usual place, if it is there. */
export const readAgentConfig = (
  options: AgentOptions & { readonly config?: string },
  env: Env,
  readJoin: ReadJoin,
): Promise<GivenAgentConfig> => {
  const file = readAgentFile(options.config ?? env[fileVariable])
  return givenConfig({ options, env, file }, readJoin, pinnedRoot)
}

export const agentConfig = async (
  options: AgentOptions,
  env: Env,
  readJoin: ReadJoin,
  pinned: string | null = pinnedRoot,
  file: FileSettings | null = null,
): Promise<ParsedConfig> => {
  const { config, problems } = await givenConfig({ options, env, file }, readJoin, pinned)
  return config === null
    ? { kind: 'invalid', why: problems[0] ?? 'the configuration cannot be used' }
    : { kind: 'config', config }
}

const givenConfig = async (given: Given, readJoin: ReadJoin, pinned: string | null): Promise<GivenAgentConfig> => {
  const { file, env } = given
  const { values, problems } = resolveSettings(agentSettings, given)
  const refused = (...more: readonly string[]): GivenAgentConfig => {
    return { values, file, config: null, problems: [...problems, ...more] }
  }
  if (problems.length > 0) return refused()
  const found = await joinSource(values, env, readJoin)
  if (found.kind === 'invalid') return refused(found.why)
  if (found.source.kind === 'given' && isOfAnotherRoot(found.source.join, pinned)) return refused(anotherRoot)
  const joinMethod = values.joinMethod.value ?? found.method
  const keyStorage = values.keyStorage.value ?? (joinMethod === 'hardware' ? 'memory' : 'file')
  const recovery = recoveryOf(values, keyStorage)
  const bootstrap = bootstrapOf(values)
  const wireguard = wireguardOf(values)
  if (isProblem(recovery) || isProblem(bootstrap) || isProblem(wireguard)) {
    return refused(...[recovery, bootstrap, wireguard].filter(isProblem).map(({ problem }) => problem))
  }
  return {
    values,
    file,
    problems,
    config: {
      stateFolder: values.state.value,
      join: found.source,
      joinMethod,
      keyType: values.keyType.value,
      keyStorage,
      hardwareFile: values.hardwareFile.value,
      nodeId: values.nodeId.value,
      recovery,
      bootstrap,
      metricsListen: values.metricsListen.value,
      reportEveryMs: values.reportEvery.value,
      rehearseEveryMs: values.rehearseEvery.value,
      wireguard,
      publish: values.publish.value,
      agentToml: values.agentToml.value,
      helperSocket: values.helperSocket.value,
      pinnedRoot: pinned,
      logLevel: values.logLevel.value,
      logFormat: values.log.value,
    },
  }
}

/** Of commands that look at an agent: what else of its file is wrong does not matter to them. */
export const agentStateFolder = (options: Pick<AgentOptions, 'state'>, env: Env): string => {
  const file = readAgentFile(env[fileVariable])
  const known = file === null ? null : { ...file, problems: [] }
  const { values, problems } = resolveSettings({ state: agentSettings.state }, { options, env, file: known })
  return problems.length === 0 ? values.state.value : defaultStateFolder
}

export const isOfAnotherRoot = (join: JoinString, pinned: string | null): boolean =>
  pinned !== null && join.rootFingerprint !== pinned

export const anotherRoot = 'the join string is for another root than the one this agent was built for'

/** A recovery key beside a key that must not reach the disk would be the same key by another name. */
const recoveryOf = (
  { recovery }: AgentValues,
  keyStorage: AgentConfig['keyStorage'],
): AgentConfig['recovery'] | Problem => {
  if (keyStorage === 'file') return recovery.value ?? 'key'
  if (recovery.value === null || recovery.value === 'none') return 'none'
  return { problem: `${recovery.label} takes key, bearer or none; with keys in memory only none` }
}

const bootstrapOf = ({ staticCertificate, staticKey }: AgentValues): AgentConfig['bootstrap'] | Problem => {
  const [certificateFile, keyFile] = [staticCertificate.value, staticKey.value]
  if (certificateFile === null && keyFile === null) return null
  if (certificateFile !== null && keyFile !== null) return { certificateFile, keyFile }
  return { problem: `${staticCertificate.label} and ${staticKey.label} are given together or not at all` }
}

type FoundJoin = { readonly kind: 'found'; readonly source: JoinSource; readonly method: 'token' | 'hardware' }

const joinSource = async (
  { joinFile }: AgentValues,
  env: Env,
  readJoin: ReadJoin,
): Promise<FoundJoin | { kind: 'invalid'; why: string }> => {
  const path = joinFile.value
  if (path === '-') return given(parseJoinFile((await readJoin('-')) ?? ''), 'standard input')
  const inEnvironment = env['MUSTER_JOIN'] ?? ''
  if (joinFile.source.from !== 'option' && inEnvironment !== '') {
    return given(parseJoinString(inEnvironment), 'MUSTER_JOIN', env['MUSTER_JOIN_ENV_FILE'] ?? null)
  }
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
