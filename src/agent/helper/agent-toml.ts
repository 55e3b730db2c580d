// /etc/muster/agent.toml: what the owner of this host lets its Muster agent have done, whatever a plane says (ruling 21). What is
// not in it is off. The helper goes by it, and so does an agent without a helper where it reloads programs. Pure.

import { parseToml, type TomlTable, type TomlValue } from '#platform/toml.ts'
import { parseDuration } from '#wire/core/duration.ts'
import { domainNameShape } from '#wire/core/join-string.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'

export const defaultAgentToml = '/etc/muster/agent.toml'

export type AgentToml = {
  /** Whose leaves may be written; null: none may. */
  readonly node: { readonly domain: string; readonly id: string } | null
  /** The file with the programs roots, as root laid it down; null: nothing can be verified, so nothing is written. */
  readonly programRoots: string | null
  readonly outputs: readonly ListedDirectory[]
  readonly reloads: ReadonlyMap<string, ListedReload>
  readonly services: ReadonlyMap<string, ListedService>
  readonly checks: ReadonlyMap<string, ListedCheck>
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
  const root = parseToml(text)
  if (root.kind === 'invalid') return { kind: 'invalid', why: `line ${root.line}: ${root.why}` }
  try {
    return { kind: 'allowed', toml: agentTomlOf(new Section(root, '')) }
  } catch (error) {
    if (error instanceof WrongEntry) return { kind: 'invalid', why: error.message }
    throw error
  }
}

/** Of a host that allows nothing. */
export const nothingAllowed: AgentToml = {
  node: null,
  programRoots: null,
  outputs: [],
  reloads: new Map(),
  services: new Map(),
  checks: new Map(),
}

/** Thrown and caught within this file. */
class WrongEntry extends Error {}

const agentTomlOf = (root: Section): AgentToml => {
  const node = root.section('node')
  const programs = root.section('programs')
  const toml: AgentToml = {
    node: node === null ? null : nodeOf(node),
    programRoots: programs === null ? null : programs.required('roots', absolutePath),
    outputs: root.sections('outputs').map(directoryOf),
    reloads: root.named('reloads', reloadName, reloadOf),
    services: root.named('services', serviceName, serviceOf),
    checks: root.named('checks', serviceName, checkOf),
  }
  programs?.end()
  root.end()
  const twice = toml.outputs.find(({ directory }, at) =>
    toml.outputs.some((other, before) => before < at && other.directory === directory),
  )
  if (twice !== undefined) root.wrong('outputs', `${twice.directory} is listed twice`)
  return toml
}

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
  arguments: section.optional('arguments', fixedOrAny) ?? [],
  environment: section.list('environment', variableName) ?? [],
})

/** What one value may be: the value, or null. `takes`: in words, for the one who wrote something else. */
type Shape<T> = { readonly takes: string; readonly of: (value: TomlValue) => T | null }

const string = (takes: string, shape: RegExp, longest = 255): Shape<string> => ({
  takes,
  of: (value) =>
    value.kind === 'string' && value.value.length <= longest && shape.test(value.value) ? value.value : null,
})

const domainName = string('the name of the trust domain', domainNameShape)
const nodeId = string('the id of this node in the registry', new RegExp(nodeIdShape))
const outputName = string(
  'names of outputs: lower-case letters, digits and dashes',
  /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/,
)
const reloadName = /^[a-z0-9][a-z0-9._@-]{0,62}$/
const serviceName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/
const userName = string('the name of a user or a group, or its number', /^([a-z_][a-z0-9_.-]*\$?|\d{1,10})$/i, 32)
const unitName = string('the name of a unit that ends in .service', /^[A-Za-z0-9:_.@\\-]+\.service$/)
const variableName = string('names of variables', /^[A-Za-z_][A-Za-z0-9_]*$/, 64)
// oxlint-disable-next-line no-control-regex -- a program cannot be given a NUL
const word = string('strings', /^[^\x00]*$/, 4096)

const isPlainPath = (path: string): boolean =>
  /^(\/[A-Za-z0-9._@+-]+)+$/.test(path) && path.split('/').every((part) => part !== '.' && part !== '..')

const plainPath = (takes: string): Shape<string> => ({
  takes,
  of: (value) =>
    value.kind === 'string' && value.value.length <= 255 && isPlainPath(value.value) ? value.value : null,
})

const absolutePath = plainPath('a full path without . and ..')
const directory = plainPath('the full path of a directory, without . and .. and without a slash at its end')

const duration: Shape<number> = {
  takes: 'a duration between 1s and 10m, e.g. "30s"',
  of: (value) => {
    const ms = value.kind === 'string' ? parseDuration(value.value) : null
    return ms !== null && ms >= 1_000 && ms <= 600_000 ? ms : null
  },
}

const lookBack: Shape<number> = {
  takes: 'a duration between 1m and 30d, e.g. "10m"',
  of: (value) => {
    const ms = value.kind === 'string' ? parseDuration(value.value) : null
    return ms !== null && ms >= 60_000 && ms <= 30 * 86_400_000 ? ms : null
  },
}

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

const unitActions = ['reload', 'restart', 'reload-or-restart'] as const
const unitAction: Shape<(typeof unitActions)[number]> = {
  takes: unitActions.join(', '),
  of: (value) => unitActions.find((action) => value.kind === 'string' && value.value === action) ?? null,
}

const fixedOrAny: Shape<ListedProgram['arguments']> = {
  takes: 'a list of strings, or "any"',
  of: (value) => {
    if (value.kind === 'string') return value.value === 'any' ? 'any' : null
    const words = value.kind === 'list' ? value.items.map(word.of) : [null]
    return words.every((each) => each !== null) ? words : null
  },
}

/** A table of which every key is asked for once; what is left over at its end is unknown. */
class Section {
  readonly #table: TomlTable
  readonly #name: string
  readonly #known = new Set<string>()

  constructor(table: TomlTable, name: string) {
    this.#table = table
    this.#name = name
  }

  required<T>(key: string, shape: Shape<T>): T {
    return this.optional(key, shape) ?? this.wrong(key, `is missing; it takes ${shape.takes}`)
  }

  optional<T>(key: string, shape: Shape<T>): T | null {
    const value = this.#take(key)
    if (value === null) return null
    return shape.of(value) ?? this.wrong(key, `takes ${shape.takes}`)
  }

  list<T>(key: string, shape: Shape<T>): readonly T[] | null {
    const value = this.#take(key)
    if (value === null) return null
    if (value.kind !== 'list') return this.wrong(key, `takes a list: ${shape.takes}`)
    return value.items.map((item) => shape.of(item) ?? this.wrong(key, `takes a list: ${shape.takes}`))
  }

  section(key: string): Section | null {
    const value = this.#take(key)
    if (value === null) return null
    return value.kind === 'table' ? new Section(value, this.#path(key)) : this.wrong(key, `is a table: [${key}]`)
  }

  /** `[[KEY]]` */
  sections(key: string): readonly Section[] {
    const value = this.#take(key)
    if (value === null) return []
    const items = value.kind === 'list' ? value.items : []
    if (value.kind !== 'list') this.wrong(key, `is a list of tables: [[${key}]]`)
    return items.map((item, at) =>
      item.kind === 'table'
        ? new Section(item, this.#path(`${key}[${at + 1}]`))
        : this.wrong(key, `is a list of tables: [[${key}]]`),
    )
  }

  /** `[KEY.NAME]` */
  named<T>(key: string, names: RegExp, read: (section: Section) => T): ReadonlyMap<string, T> {
    const value = this.#take(key)
    if (value === null) return new Map()
    if (value.kind !== 'table') return this.wrong(key, `takes tables: [${key}.NAME]`)
    const found = new Map<string, T>()
    for (const [name, entry] of value.entries) {
      if (entry.kind !== 'table') this.wrong(key, `takes tables: [${key}.NAME]`)
      else if (!names.test(name))
        throw new WrongEntry(`line ${entry.line}, ${this.#path(key)}: ${name} is not a name it takes`)
      else found.set(name, read(new Section(entry, this.#path(`${key}.${name}`))))
    }
    return found
  }

  /** After the last key was asked for. */
  end(): void {
    for (const key of this.#table.entries.keys()) {
      if (!this.#known.has(key)) this.wrong(key, `is unknown here; known are ${[...this.#known].join(', ')}`)
    }
  }

  wrong(key: string, why: string): never {
    const line = this.#table.entries.get(key)?.line ?? this.#table.line
    const place = this.#path(key)
    throw new WrongEntry(`line ${line}${place === '' ? '' : `, ${place}`}: ${why}`)
  }

  #take(key: string): TomlValue | null {
    this.#known.add(key)
    return this.#table.entries.get(key) ?? null
  }

  #path(key: string): string {
    return [this.#name, key].filter((part) => part !== '').join('.')
  }
}
