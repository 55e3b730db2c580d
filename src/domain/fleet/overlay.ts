// What a vCluster asks of the machines in it: files, and services that run as long as they belong to it. Not to be confused
// with the WireGuard network (core/wireguard.ts), which document 002 calls an overlay too.

import type { Rule } from '#domain/core/settings-check.ts'
import { reconcileConditions, type ConditionReport, type Unchanged } from '#domain/core/conditions.ts'
import type { NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { ConditionName, Node } from '#domain/core/node.ts'

export type Overlay = {
  readonly files: readonly OverlayFile[]
  readonly services: readonly Service[]
}

/** Relative to the agent's folder for overlays, so that all files of a revision appear in one rename. */
export type OverlayFile = {
  /** Relative, of plain segments. */
  readonly path: string
  /** Permission bits, e.g. 0o644. */
  readonly mode: number
  readonly content: string
}

/** Run by systemd where there is one, else as a child the agent supervises (ruling 17). */
export type Service = {
  readonly name: string
  /** The program and its arguments, without a shell. `{overlay}` is replaced by the folder of the files. */
  readonly command: readonly string[]
}

export const noOverlay: Overlay = { files: [], services: [] }

// What makes an overlay one that can be put in place. Its shape has been checked where it came in.

/** As JSON, in bytes. All of it has to fit a frame of the channel. */
export const longestOverlay = 40_000

/** Null: it can be. */
export const overlayProblem = (overlay: Overlay): string | null => {
  const paths = overlay.files.map(({ path }) => path)
  const twice = duplicate(paths) ?? duplicate(overlay.services.map(({ name }) => name))
  if (twice !== null) return `${twice} is there twice`
  const below = insideFile(paths)
  if (below !== null) return `${below} lies below a path that is a file`
  const bytes = jsonBytes(overlay)
  return bytes <= longestOverlay ? null : `the overlay has ${bytes} bytes, and at most ${longestOverlay} fit a frame`
}

const duplicate = (names: readonly string[]): string | null =>
  names.find((name, at) => names.indexOf(name) !== at) ?? null

const insideFile = (paths: readonly string[]): string | null => {
  const files = new Set(paths)
  return paths.find((path) => foldersOf(path).some((folder) => files.has(folder))) ?? null
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

// What has become of an overlay, for the journal: which files and services. Never what is in them: that may be a secret.

/** Empty: nothing is otherwise, unless in its order. */
export const overlayChanges = (before: Overlay, after: Overlay): string[] => [
  ...named('file', byName(before.files, 'path'), byName(after.files, 'path')),
  ...named('service', byName(before.services, 'name'), byName(after.services, 'name')),
]

type Contents = ReadonlyMap<string, string>

const byName = <N extends string, T extends Readonly<Record<N, string>>>(things: readonly T[], name: N): Contents =>
  new Map(things.map((thing) => [thing[name], JSON.stringify(thing)]))

const named = (what: string, before: Contents, after: Contents): string[] => [
  ...[...before.keys()].filter((name) => !after.has(name)).map((name) => `${what} ${name} removed`),
  ...[...after].flatMap(([name, content]) => {
    if (before.get(name) === content) return []
    return [`${what} ${name} ${before.has(name) ? 'changed' : 'added'}`]
  }),
]

// What an agent says of its overlay, as conditions of its node. Each state says all of it: what it no longer shows is over.

/** As much of it as is decided on. */
export type OverlayShown = {
  readonly applied: boolean
  readonly detail: string | null
  /** What is no longer what was applied, in words. */
  readonly drift: readonly string[]
}

export type OverlayFacts = NodeFacts & { readonly shown: OverlayShown }

const about = ['overlay_failed', 'config_drift'] as const satisfies readonly ConditionName[]

export const decideOverlayShown = ({ shown, ...facts }: OverlayFacts): NodeDecided | Unchanged =>
  reconcileConditions({ ...facts, about, reported: [...failure(shown), ...drift(facts.node.value, shown)] })

const failure = ({ applied, detail }: OverlayShown): ConditionReport['reported'] =>
  applied
    ? []
    : [
        {
          name: 'overlay_failed',
          reason: 'what the node has to run could not be put in place',
          evidence: { detail },
        },
      ]

/** In maintenance mode nothing is declared that it could drift from. */
const drift = ({ assignment }: Node, { drift: lines }: OverlayShown): ConditionReport['reported'] =>
  assignment === null || lines.length === 0
    ? []
    : [
        {
          name: 'config_drift',
          reason: `what runs there is no longer what ${assignment} asks for`,
          evidence: { first: lines[0] ?? null, differences: lines.length },
        },
      ]
