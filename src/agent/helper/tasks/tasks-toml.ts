// `[tasks]` of agent.toml: which tasks the owner of this host lets a plane have carried out. What is not in it is refused, signed
// or not. All functions here are pure.

import { pathExists } from '#platform/paths.ts'
import * as path from 'node:path'
import {
  absolutePath,
  directory,
  oneWordOf,
  stringOf,
  unitName,
  userName,
  wholeBetween,
  wordsOrAny,
  type Section,
  type Shape,
} from '#platform/toml-section.ts'
import { parseDuration } from '#wire/core/duration.ts'
import { taskTypeShape } from '#wire/core/task-statements.ts'

export type TasksToml = {
  /** The file with the statement keys, as root laid it down. */
  readonly statementKeys: string
  /** Where seen tasks are remembered; null: in the folder `tasks` of the helper's state. */
  readonly state: string | null
  /** Where the manifests of the host's own types are. */
  readonly typesFolder: string
  readonly allow: readonly string[]
  readonly run: ReadonlyMap<string, ListedTaskProgram>
  readonly services: ReadonlyMap<string, ListedTaskService>
  readonly files: readonly ListedFileDirectory[]
  readonly cleanup: ReadonlyMap<string, ListedCleanup>
}

export type ProgramLimits = { readonly withinMs: number; readonly memoryBytes: number }

export type ListedTaskProgram = ProgramLimits & {
  readonly executable: string
  readonly user: string
  readonly arguments: readonly string[] | 'any'
  readonly workingDirectory: string
}

export const serviceActions = ['start', 'stop', 'restart', 'reload'] as const
export type ServiceAction = (typeof serviceActions)[number]
export type ListedTaskService = { readonly unit: string; readonly actions: readonly ServiceAction[] }

/** `owner`, `group`: null is the user of the helper. */
export type ListedFileDirectory = {
  readonly directory: string
  readonly owner: string | null
  readonly group: string | null
  readonly mode: number
  /** Bytes. */
  readonly largest: number
  /** How long putting one in place may take. */
  readonly withinMs: number
}

export type ListedCleanup = {
  readonly directories: readonly string[]
  /** Of each directory so many files stay. */
  readonly keepNewest: number
  /** Only files that have not been changed for so long are removed. */
  readonly olderThanMs: number
  /** The folder for the lists of what was removed. */
  readonly evidence: string
}

/** Where `muster agent trust` lays them down. */
export const defaultStatementKeys = '/etc/muster/statement-keys.pem'

/** Root has said so in agent.toml, or has laid the keys down where they usually are. A file that cannot be read counts. */
export const pinsStatementKeys = (
  { tasks }: { readonly tasks: TasksToml | null },
  statementKeys: string = defaultStatementKeys,
): boolean => tasks !== null || pathExists(statementKeys)

/** Where seen tasks are remembered. */
export const taskFolder = ({ state }: TasksToml, stateFolder: string): string =>
  state ?? path.join(stateFolder, 'tasks')

/** The directories that a helper with these tasks writes in. */
export const directoriesOfTasks = ({ state, files, cleanup }: TasksToml): readonly string[] => [
  ...new Set([
    ...(state === null ? [] : [state]),
    ...files.map(({ directory }) => directory),
    ...[...cleanup.values()].flatMap(({ directories, evidence }) => [...directories, evidence]),
  ]),
]

/** The section is read to its end. */
export const readTasks = (section: Section): TasksToml => {
  const services = section.named('services', listedName, serviceOf)
  const tasks: TasksToml = {
    statementKeys: section.optional('statement_keys', absolutePath) ?? defaultStatementKeys,
    state: section.optional('state', directory),
    typesFolder: section.optional('types_folder', directory) ?? '/etc/muster/task-types',
    allow: section.list('allow', taskType) ?? [],
    run: section.named('run', listedName, programOf),
    services,
    files: section.sections('files').map(fileDirectoryOf),
    cleanup: section.named('cleanup', listedName, cleanupOf),
  }
  section.end()
  const own = tasks.files.find(({ directory }) => isOwnPlace(tasks, directory))
  if (own !== undefined) section.wrong('files', `cannot list ${own.directory}: ${whyNotOwn}`)
  for (const [name, { directories, evidence }] of tasks.cleanup) {
    const listed = [...directories, evidence].find((place) => isOwnPlace(tasks, place))
    if (listed !== undefined) section.wrong(`cleanup.${name}`, `cannot list ${listed}: ${whyNotOwn}`)
  }
  return tasks
}

const whyNotOwn = 'what the helper believes and remembers is there or below'

/** A task must not change what decides about tasks: the keys, the manifests, agent.toml, and which ids were seen. */
const isOwnPlace = ({ statementKeys, typesFolder, state }: TasksToml, folder: string): boolean =>
  [statementKeys, typesFolder, state ?? usualState, '/etc/muster/agent.toml'].some((place) => isWithin(place, folder))

/** Of the unit of the package. */
const usualState = '/var/lib/muster-agent-helper/tasks'

const listedName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

const usualLimits: ProgramLimits = { withinMs: 600_000, memoryBytes: 512 * 1024 ** 2 }

/** Of a program of the allow-list, and of an own type. */
export const limitsIn = (section: Section): ProgramLimits => ({
  withinMs: section.optional('within', durationBetween('1s', '24h')) ?? usualLimits.withinMs,
  memoryBytes: section.optional('memory', bytes('16M')) ?? usualLimits.memoryBytes,
})

const programOf = (section: Section): ListedTaskProgram => {
  const program = {
    executable: section.required('executable', absolutePath),
    user: section.required('user', userName),
    arguments: section.optional('arguments', wordsOrAny) ?? [],
    workingDirectory: section.optional('working_directory', directory) ?? '/',
    ...limitsIn(section),
  }
  // What it is given would be root's orders, and they would come from the plane.
  if (program.arguments === 'any' && ['root', '0'].includes(program.user))
    section.wrong('arguments', 'takes a list where the user is root')
  section.end()
  return program
}

const serviceOf = (section: Section): ListedTaskService => {
  const service = { unit: section.required('unit', unitName), actions: section.list('actions', serviceAction) ?? [] }
  section.end()
  return service
}

const fileDirectoryOf = (section: Section): ListedFileDirectory => {
  const listed = {
    directory: section.required('directory', directory),
    owner: section.optional('owner', userName),
    group: section.optional('group', userName),
    mode: section.optional('mode', fileMode) ?? 0o644,
    largest: section.optional('largest', bytes('1K')) ?? 64 * 1024 ** 2,
    withinMs: section.optional('within', durationBetween('1s', '24h')) ?? usualLimits.withinMs,
  }
  section.end()
  return listed
}

const cleanupOf = (section: Section): ListedCleanup => {
  const keepNewest = section.optional('keep_newest', wholeBetween(0, 100_000))
  const olderThanMs = section.optional('older_than', durationBetween('1m', '3650d'))
  if (keepNewest === null && olderThanMs === null) section.wrong('', 'takes keep_newest, older_than or both')
  const listed = {
    directories: section.list('directories', directory) ?? [],
    keepNewest: keepNewest ?? 0,
    olderThanMs: olderThanMs ?? 0,
    evidence: section.required('evidence', directory),
  }
  section.end()
  const within = listed.directories.find((place) => isWithin(listed.evidence, place))
  if (within !== undefined) section.wrong('evidence', `cannot be in ${within}, which is cleaned up`)
  return listed
}

/** By their letters alone: neither place has a `..` in it. */
export const isWithin = (place: string, folder: string): boolean => place === folder || place.startsWith(`${folder}/`)

const taskType = stringOf('types of tasks, e.g. "run"', new RegExp(taskTypeShape))
const serviceAction = oneWordOf(serviceActions)

export const durationBetween = (least: string, most: string, example = '10m'): Shape<number> => {
  const leastMs = parseDuration(least) ?? 0
  const mostMs = parseDuration(most) ?? 0
  return {
    takes: `a duration between ${least} and ${most}, e.g. "${example}"`,
    of: (value) => {
      const ms = value.kind === 'string' ? parseDuration(value.value) : null
      return ms !== null && ms >= leastMs && ms <= mostMs ? ms : null
    },
  }
}

const unitBytes = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 } as const

const parseBytes = (text: string): number | null => {
  const [, count, unit] = /^(\d{1,6})([KMG])$/.exec(text) ?? []
  return count === undefined ? null : Number(count) * unitBytes[unit as keyof typeof unitBytes]
}

/** As systemd writes them. */
const bytes = (least: string): Shape<number> => ({
  takes: `bytes with K, M or G, at least "${least}", e.g. "512M"`,
  of: (value) => {
    const found = value.kind === 'string' ? parseBytes(value.value) : null
    return found !== null && found >= (parseBytes(least) ?? 0) ? found : null
  },
})

/** No set-user-id bit, and not for everybody to write. */
const fileMode: Shape<number> = {
  takes: 'a mode of 0o400 to 0o775 that lets not everybody write, e.g. 0o644',
  of: (value) =>
    value.kind === 'number' && (value.value & ~0o775) === 0 && (value.value & 0o400) !== 0 ? value.value : null,
}
