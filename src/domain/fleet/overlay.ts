// What a vCluster asks of the machines in it: files, services that run as long as they belong to it, and health checks. Not to
// be confused with the WireGuard network (core/wireguard.ts), which document 002 calls an overlay too.

import type { Rule } from '#domain/core/settings-check.ts'
import { longestFilled } from './templates.ts'

export type Overlay = {
  readonly files: readonly OverlayFile[]
  readonly services: readonly Service[]
  /**
   * How services run, for those that do not run as usual. Beside the services and not in them: a replica or an agent of 0.3 would
   * start such a service as the wrong user, or without its limits.
   */
  readonly terms: readonly ServiceTerms[]
  /** The paths of files in which values of the node are filled in (templates.ts). */
  readonly templates: readonly string[]
  readonly checks: readonly HealthCheck[]
}

/** Relative to the agent's folder for overlays, so that all files of a revision appear in one rename. */
export type OverlayFile = {
  /** Relative, of plain segments. */
  readonly path: string
  /** Permission bits, e.g. 0o644. */
  readonly mode: number
  readonly content: string
}

/** Run by the helper or by systemd where there is one, else as a child the agent supervises (ruling 17). */
export type Service = {
  readonly name: string
  /** The program and its arguments, without a shell. `{overlay}` is replaced by the folder of the files. */
  readonly command: readonly string[]
}

export const restartPolicies = ['always', 'on-failure', 'never'] as const

export type ServiceTerms = {
  readonly service: string
  /** Null: the runner decides; without a helper it is the agent's user. Never root. */
  readonly user: string | null
  readonly environment: Readonly<Record<string, string>>
  /** Absolute, or beginning with `{overlay}`; null: the root. */
  readonly workingDirectory: string | null
  readonly restart: (typeof restartPolicies)[number]
  /** Null: no limit of its own. */
  readonly limits: {
    readonly memoryBytes: number | null
    /** Of a processor's time: 1.5 is one and a half. */
    readonly cpus: number | null
    readonly openFiles: number | null
  }
  /** Values of the node are filled in in its command and environment. */
  readonly template: boolean
}

export const usualTerms = (service: string): ServiceTerms => ({
  service,
  user: null,
  environment: {},
  workingDirectory: null,
  restart: 'always',
  limits: { memoryBytes: null, cpus: null, openFiles: null },
  template: false,
})

export const termsOf = ({ terms }: Pick<Overlay, 'terms'>, service: string): ServiceTerms =>
  terms.find((one) => one.service === service) ?? usualTerms(service)

/** Whether an agent of 0.3 runs the service as asked: the plane fills templates in, and the rest it does not know. */
export const runsAsUsual = ({ user, environment, workingDirectory, restart, limits }: ServiceTerms): boolean =>
  user === null &&
  Object.keys(environment).length === 0 &&
  workingDirectory === null &&
  restart === 'always' &&
  Object.values(limits).every((limit) => limit === null)

/** A program whose exit code and first line say how the machine is. */
export type HealthCheck = {
  readonly name: string
  /** As of a service; or a check that the agent brings along (`shippedChecks`), and its arguments. */
  readonly command: readonly string[]
  readonly intervalMs: number
  /** One that takes longer is ended, and has failed. */
  readonly timeoutMs: number
}

/** The first word of a check that every agent can make itself. */
const shippedChecks = ['muster:read-only', 'muster:gpus', 'muster:kernel-errors'] as const

export const noOverlay: Overlay = { files: [], services: [], terms: [], templates: [], checks: [] }

// What makes an overlay one that can be put in place. Its shape has been checked where it came in.

/** As JSON, in bytes. All of it has to fit a frame of the channel. */
export const longestOverlay = 40_000

/** Null: it can be. `field`: where in the overlay. */
export const overlayProblem = (overlay: Overlay): { readonly field: string; readonly why: string } | null => {
  const twice = [
    [overlay.files.map(({ path }) => path), 'files'],
    [overlay.services.map(({ name }) => name), 'services'],
    [overlay.checks.map(({ name }) => name), 'checks'],
  ] as const
  for (const [names, field] of twice) {
    const at = names.findIndex((name, first) => names.indexOf(name) !== first)
    if (at !== -1) return { field: `${field}.${at}`, why: `${names[at]} is there twice` }
  }
  const paths = overlay.files.map(({ path }) => path)
  const below = insideFile(paths)
  if (below !== -1) return { field: `files.${below}.path`, why: `${paths[below]} lies below a path that is a file` }
  return checksProblem(overlay.checks) ?? lengthProblem(overlay)
}

const checksProblem = (checks: readonly HealthCheck[]): ReturnType<typeof overlayProblem> => {
  for (const [at, { command, intervalMs, timeoutMs }] of checks.entries()) {
    const [program = ''] = command
    if (timeoutMs > intervalMs)
      return { field: `checks.${at}.timeoutMs`, why: 'a check has to be over before it is due again' }
    if (program.startsWith('muster:') && !(shippedChecks as readonly string[]).includes(program))
      return {
        field: `checks.${at}.command`,
        why: `there is no check ${program}; there are ${shippedChecks.join(', ')}`,
      }
  }
  return null
}

const lengthProblem = (overlay: Overlay): ReturnType<typeof overlayProblem> => {
  const { files, services, terms, checks } = longestFilled(overlay)
  // An overlay without them is as long as 0.3 counted it.
  const more = [...terms, ...checks]
  const bytes = jsonBytes({ files, services }) + (more.length === 0 ? 0 : jsonBytes(more))
  if (bytes <= longestOverlay) return null
  const why = `the overlay has ${bytes} bytes with its templates filled in, and at most ${longestOverlay} fit a frame`
  return { field: '', why }
}

const insideFile = (paths: readonly string[]): number => {
  const files = new Set(paths)
  return paths.findIndex((path) => foldersOf(path).some((folder) => files.has(folder)))
}

const foldersOf = (path: string): string[] => {
  const segments = path.split('/')
  return segments.slice(1).map((_, at) => segments.slice(0, at + 1).join('/'))
}

const jsonBytes = (value: object): number => new TextEncoder().encode(JSON.stringify(value)).length

/** Beside an overlay of full length, and a policy, it still has to fit the frame. */
const longestServiceAlone = 2048

/** A single setting, such as time sync, whose shape has not been checked. */
export const serviceOrNull: Rule = {
  takes: `null, or a service such as {"name":"chronyd","command":["/usr/sbin/chronyd","-d"]} of at most ${longestServiceAlone} bytes`,
  fits: (value) => value === null || (isService(value) && jsonBytes(value) <= longestServiceAlone),
}

const isService = (value: unknown): value is Service => {
  if (typeof value !== 'object' || value === null || Object.keys(value).toSorted().join() !== 'command,name')
    return false
  const { name, command } = value as Record<string, unknown>
  return (
    typeof name === 'string' &&
    /^[a-z0-9][a-z0-9-]{0,62}$/.test(name) &&
    Array.isArray(command) &&
    command.length >= 1 &&
    command.length <= 64 &&
    command.every((part) => typeof part === 'string' && part !== '' && !part.includes('\0'))
  )
}

// What has become of an overlay, for the journal: which files, services and checks. Never what is in them: that may be a secret.

/** Empty: nothing is otherwise, unless in its order. */
export const overlayChanges = (before: Overlay, after: Overlay): string[] => [
  ...named('file', filesIn(before), filesIn(after)),
  ...named('service', servicesIn(before), servicesIn(after)),
  ...named('check', checksIn(before), checksIn(after)),
]

/** Whatever order the members of its objects have: PostgreSQL's upgrade changes it. */
export const isSameOverlay = (one: Overlay, other: Overlay): boolean =>
  [filesIn, servicesIn, checksIn].every((part) => JSON.stringify([...part(one)]) === JSON.stringify([...part(other)]))

type Contents = ReadonlyMap<string, string>

const filesIn = ({ files, templates }: Overlay): Contents =>
  new Map(files.map(({ path, mode, content }) => [path, JSON.stringify([mode, content, templates.includes(path)])]))

const servicesIn = (overlay: Overlay): Contents =>
  new Map(
    overlay.services.map(({ name, command }) => {
      const { user, environment, workingDirectory, restart, limits, template } = termsOf(overlay, name)
      const { memoryBytes, cpus, openFiles } = limits
      const parts = [command, user, Object.entries(environment).toSorted(byFirst), workingDirectory, restart, template]
      return [name, JSON.stringify([...parts, memoryBytes, cpus, openFiles])]
    }),
  )

const checksIn = ({ checks }: Overlay): Contents =>
  new Map(
    checks.map(({ name, command, intervalMs, timeoutMs }) => [name, JSON.stringify([command, intervalMs, timeoutMs])]),
  )

const byFirst = ([one]: readonly [string, string], [other]: readonly [string, string]): number => (one < other ? -1 : 1)

const named = (what: string, before: Contents, after: Contents): string[] => [
  ...[...before.keys()].filter((name) => !after.has(name)).map((name) => `${what} ${name} removed`),
  ...[...after].flatMap(([name, content]) => {
    if (before.get(name) === content) return []
    return [`${what} ${name} ${before.has(name) ? 'changed' : 'added'}`]
  }),
]
