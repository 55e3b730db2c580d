// What an agent is told, parsed once into a complete value.

import { keyTypes, type KeyType } from '#domain/profile.ts'
import { parseJoinString, type JoinString } from '#wire/join-string.ts'
import { nodeIdShape } from '#wire/node-api.ts'

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
  readonly logLevel: string
}

export type JoinSource =
  /** Handed over at start; a token in it works once. */
  | { readonly kind: 'given'; readonly join: JoinString }
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
      logLevel,
    },
  }
}

type FoundJoin = { readonly kind: 'found'; readonly source: JoinSource; readonly method: 'token' | 'hardware' }

const joinSource = async (
  options: AgentOptions,
  env: Env,
  readJoin: (place: string) => Promise<string | null>,
): Promise<FoundJoin | { kind: 'invalid'; why: string }> => {
  if (options.joinFile === '-') return given(await readJoin('-'), 'standard input')
  const inEnvironment = env['MUSTER_JOIN'] ?? ''
  if (options.joinFile === undefined && inEnvironment !== '') return given(inEnvironment, 'MUSTER_JOIN')
  const path = options.joinFile ?? defaultJoinFile
  // A file that is gone or damaged is no trouble while there is an identity; enrolling without one says so then.
  const join = parseJoinString((await readJoin(path)) ?? '')
  return { kind: 'found', source: { kind: 'file', path }, method: methodOf(join) }
}

const given = (text: string | null, place: string): FoundJoin | { kind: 'invalid'; why: string } => {
  const join = parseJoinString(text ?? '')
  if (join === null) return invalid(`there is no join string in ${place}; muster token create prints one`)
  return { kind: 'found', source: { kind: 'given', join }, method: methodOf(join) }
}

const methodOf = (join: JoinString | null): 'token' | 'hardware' =>
  join !== null && join.secret === null ? 'hardware' : 'token'

const invalid = (why: string): { kind: 'invalid'; why: string } => ({ kind: 'invalid', why })
