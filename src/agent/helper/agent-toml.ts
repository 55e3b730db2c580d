// /etc/muster/agent.toml: what the owner of this host lets its Muster agent have done, whatever a plane says (ruling 21). What is
// not in it is off. The helper goes by it, and so does an agent without a helper where it reloads programs. All functions here are pure.

import {
  absolutePath,
  directory,
  oneWordOf,
  readToml,
  stringOf,
  unitName,
  userName,
  word,
  wordsOrAny,
  type Section,
  type Shape,
} from '#platform/toml-section.ts'
import { domainNameShape } from '#wire/core/join-string.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'
import { durationBetween, readTasks, type TasksToml } from './tasks/tasks-toml.ts'

export const defaultAgentToml = '/etc/muster/agent.toml'

export type AgentToml = {
  /** Whose leaves may be written; null: none may. */
  readonly node: { readonly domain: string; readonly id: string } | null
  /** The file with the programs roots, as root laid it down; null: nothing can be verified, so nothing is written. */
  readonly programRoots: string | null
  /** The file with roots of outside issuers, whose authorities have no lists here; null: their leaves are not written. */
  readonly outsideRoots: string | null
  readonly outputs: readonly ListedDirectory[]
  readonly reloads: ReadonlyMap<string, ListedReload>
  readonly services: ReadonlyMap<string, ListedService>
  readonly checks: ReadonlyMap<string, ListedCheck>
  /** Null: no task is carried out. */
  readonly tasks: TasksToml | null
}

export type ListedDirectory = {
  readonly directory: string
  /** The outputs that may be written there; null: any. */
  readonly names: readonly string[] | null
  /** Who may own the files; the first is the owner where an output names none. None: the user of the helper. */
  readonly owners: readonly string[]
  readonly groups: readonly string[]
  /** Of the key: an output asks for these bits or for fewer. */
  readonly keyMode: number
}

export type ListedReload = { readonly withinMs: number } & (
  | { readonly kind: 'unit'; readonly unit: string; readonly action: 'reload' | 'restart' | 'reload-or-restart' }
  /** Without a shell, as that user; null: as the user that runs it. */
  | { readonly kind: 'command'; readonly command: readonly string[]; readonly user: string | null }
)

export type ListedCheck = { readonly withinMs: number } & (
  | ({ readonly kind: 'program' } & ListedProgram)
  /** Built in, because only root may read it: fails while the kernel has logged errors within `lastMs`. */
  | { readonly kind: 'kernel-log'; readonly lastMs: number }
)

export type ListedProgram = {
  readonly executable: string
  /** Never root. */
  readonly user: string
  /** Exactly these; `any`: those that the vCluster lists. */
  readonly arguments: readonly string[] | 'any'
  /** The names of variables that may be set besides those that say which node it is. */
  readonly environment: readonly string[]
}

/** `workingDirectory`: null is the root directory. */
export type ListedService = ListedProgram & { readonly workingDirectory: string | null }

export type ParsedAgentToml =
  | { readonly kind: 'allowed'; readonly toml: AgentToml }
  /** With line and key. */
  | { readonly kind: 'invalid'; readonly why: string }

export const parseAgentToml = (text: string): ParsedAgentToml => {
  const read = readToml(text, agentTomlOf)
  return read.kind === 'invalid' ? read : { kind: 'allowed', toml: read.value }
}

/** The agent.toml of a host that allows nothing. */
export const nothingAllowed: AgentToml = {
  node: null,
  programRoots: null,
  outsideRoots: null,
  outputs: [],
  reloads: new Map(),
  services: new Map(),
  checks: new Map(),
  tasks: null,
}

const agentTomlOf = (root: Section): AgentToml => {
  const node = root.section('node')
  const programs = root.section('programs')
  const toml: AgentToml = {
    node: node === null ? null : nodeOf(node),
    programRoots: programs === null ? null : programs.required('roots', absolutePath),
    outsideRoots: programs === null ? null : programs.optional('outside_roots', absolutePath),
    outputs: root.sections('outputs').map(directoryOf),
    reloads: root.named('reloads', reloadName, reloadOf),
    services: root.named('services', serviceName, serviceOf),
    checks: root.named('checks', serviceName, checkOf),
    tasks: tasksOf(root.section('tasks')),
  }
  programs?.end()
  root.end()
  const twice = toml.outputs.find(({ directory }, at) =>
    toml.outputs.some((other, before) => before < at && other.directory === directory),
  )
  if (twice !== undefined) root.wrong('outputs', `${twice.directory} is listed twice`)
  return toml
}

const tasksOf = (section: Section | null): TasksToml | null => (section === null ? null : readTasks(section))

const nodeOf = (section: Section): AgentToml['node'] => {
  const node = { domain: section.required('domain', domainName), id: section.required('id', nodeId) }
  section.end()
  return node
}

const directoryOf = (section: Section): ListedDirectory => {
  const listed = {
    directory: section.required('directory', directory),
    names: section.list('names', outputName),
    owners: section.list('owners', userName) ?? [],
    groups: section.list('groups', userName) ?? [],
    keyMode: section.optional('key_mode', keyMode) ?? 0o640,
  }
  section.end()
  return listed
}

const usualWithinMs = 30_000
const usualLastMs = 600_000

const reloadOf = (section: Section): ListedReload => {
  const withinMs = section.optional('within', duration) ?? usualWithinMs
  const unit = section.optional('unit', unitName)
  const command = section.list('command', word)
  if ((unit === null) === (command === null)) section.wrong('', 'takes unit or command, one of them')
  const reload: ListedReload =
    unit === null
      ? {
          kind: 'command',
          command: commandOf(section, command ?? []),
          user: section.optional('user', userName),
          withinMs,
        }
      : { kind: 'unit', unit, action: section.optional('action', unitAction) ?? 'reload', withinMs }
  section.end()
  return reload
}

const commandOf = (section: Section, command: readonly string[]): readonly string[] =>
  command[0]?.startsWith('/') === true ? command : section.wrong('command', 'begins with the full path of a program')

const serviceOf = (section: Section): ListedService => {
  const service = { ...programIn(section), workingDirectory: section.optional('working_directory', directory) }
  section.end()
  return service
}

const checkOf = (section: Section): ListedCheck => {
  const withinMs = section.optional('within', duration) ?? usualWithinMs
  const isKernelLog = section.optional('reads', kernelLog) !== null
  const check: ListedCheck = isKernelLog
    ? { kind: 'kernel-log', lastMs: section.optional('last', lookBack) ?? usualLastMs, withinMs }
    : { kind: 'program', ...programIn(section), withinMs }
  section.end()
  return check
}

const programIn = (section: Section): ListedProgram => ({
  executable: section.required('executable', absolutePath),
  user: section.required('user', userName),
  arguments: section.optional('arguments', wordsOrAny) ?? [],
  environment: section.list('environment', variableName) ?? [],
})

const domainName = stringOf('the name of the trust domain', domainNameShape)
const nodeId = stringOf('the id of this node in the registry', new RegExp(nodeIdShape))
const outputName = stringOf(
  'names of outputs: lower-case letters, digits and dashes',
  /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/,
)
const reloadName = /^[a-z0-9][a-z0-9._@-]{0,62}$/
const serviceName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/
const variableName = stringOf('names of variables', /^[A-Za-z_][A-Za-z0-9_]*$/, 64)

const duration = durationBetween('1s', '10m', '30s')
const lookBack = durationBetween('1m', '30d')

const kernelLog: Shape<'kernel-log'> = {
  takes: '"kernel-log"',
  of: (value) => (value.kind === 'string' && value.value === 'kernel-log' ? 'kernel-log' : null),
}

/** Only reading and writing, and nothing for everybody. */
const keyMode: Shape<number> = {
  takes: 'a mode of 0o400 to 0o660 that lets nobody but owner and group in',
  of: (value) =>
    value.kind === 'number' && (value.value & ~0o660) === 0 && (value.value & 0o400) !== 0 ? value.value : null,
}

const unitAction = oneWordOf(['reload', 'restart', 'reload-or-restart'])
