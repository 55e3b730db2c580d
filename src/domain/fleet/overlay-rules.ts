// What makes an overlay one that can be put in place. Its shape has been checked where it came in.

import type { Overlay, Service } from './overlay.ts'
import type { Rule } from '#domain/core/settings-check.ts'

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

/** Besides an overlay of full length, and a policy, it still has to fit the frame. */
const longestServiceAlone = 2048

/** A setting by itself, such as time sync: nobody has looked at its shape. */
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
