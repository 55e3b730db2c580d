// Overlays and whole vClusters as people keep them: YAML or JSON, or a folder with the files beside the document. What is wrong
// is said with the line and the key, before anything is sent. Keys are those of the API; modes, durations and sizes may be
// written as text.

import * as path from 'node:path'
import { isScalar, isSeq } from 'yaml'
import { readTree } from '#platform/file-tree.ts'
import { isFolder, pathExists } from '#platform/paths.ts'
import { errno } from '#platform/files.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { OverlayRequest } from '#wire/fleet/overlay-document.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { readText } from '#cli/kit/arguments.ts'
import { contentsOf, sourceOf, withLineOf, wrong, type Key, type Source } from '#cli/kit/document-source.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { printable } from '#cli/kit/printable.ts'
import { overlayKeys, settingKeys, type Field, type Fields } from './overlay-keys.ts'

/** A document, and where in it each of its values stands. */
export type OverlayFile = {
  readonly name: string | null
  /** Settings by their dotted names. */
  readonly set: Readonly<Record<string, unknown>>
  readonly overlay: OverlayRequest
  /** A refusal of the plane, with the line it is about where it names a field of the document. */
  withLine(failure: Failure): Failure
}

const help = 'See what one looks like: muster vcluster apply --help'

const longestDocument = 256 * 1024
const mostFiles = { files: 128, bytes: longestDocument }
const documentNames = ['vcluster.yaml', 'vcluster.yml', 'vcluster.json']

/** `--overlay FILE`: files, services and checks. */
export const readOverlayFile = async (cli: Cli, file: string): Promise<OverlayFile> => {
  const source = sourceOf(file, await readText(cli, file, longestDocument), help)
  return documentIn(source, overlayKeys, null)
}

/** `vcluster apply PLACE`: a document, or a folder with one and with `files/`. */
export const readVClusterFile = async (cli: Cli, place: string): Promise<OverlayFile> => {
  const folder = place !== '-' && isFolder(place) ? place : null
  const file = folder === null ? place : documentOf(folder)
  const read = documentIn(
    sourceOf(file, await readText(cli, file, longestDocument), help),
    { ...settingKeys, ...overlayKeys },
    folder === null ? null : path.join(folder, 'files'),
  )
  return { ...read, name: read.name ?? (folder === null ? null : path.basename(path.resolve(folder))) }
}

const documentOf = (folder: string): string => {
  const found = documentNames.map((name) => path.join(folder, name)).find(pathExists)
  if (found !== undefined) return found
  throw usageFailure(`There is no ${documentNames.join(' or ')} in ${folder}.`, help)
}

// What is in it.

const usualMode = 0o644

const needed: Readonly<Record<string, readonly string[]>> = {
  files: ['path', 'content'],
  services: ['name', 'command'],
  checks: ['name', 'command'],
}

type Read = Record<string, unknown>

/** `tree`: the folder whose files belong to it. */
const documentIn = (source: Source, keys: Fields, tree: string | null): OverlayFile => {
  const read = objectIn(source, [], contentsOf(source), keys)
  const { name: called, description, peering, closed, policy, outputs: listedOutputs, ...lists } = read
  if (called !== undefined && typeof called !== 'string')
    throw wrong(source, ['name'], 'takes the name of the vCluster')
  const listed = (lists['files'] ?? []) as Read[]
  const files = tree === null ? listed : withTree(source, tree, listed)
  // Planes of 0.3 ask for both of these.
  const overlay = { services: [], ...lists, files: files.map((file) => ({ mode: usualMode, ...file })) }
  for (const [list, names] of Object.entries(needed)) {
    for (const [at, one] of ((overlay as unknown as Record<string, Read[] | undefined>)[list] ?? []).entries()) {
      const missing = names.find((key) => one[key] === undefined)
      if (missing !== undefined) throw wrong(source, [list, at], `needs ${missing}`)
    }
  }
  return {
    name: called ?? null,
    set: flattened({ description, peering, closed, policy, outputs: listedOutputs }),
    overlay: overlay as unknown as OverlayRequest,
    withLine: (failure) => withLineOf(source, ['overlay', 'set'], failure),
  }
}

const flattened = (settings: Readonly<Record<string, unknown>>, prefix = ''): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(settings).flatMap(([key, part]): [string, unknown][] => {
      if (part === undefined) return []
      const isGroup = typeof part === 'object' && part !== null && !Array.isArray(part)
      return isGroup ? Object.entries(flattened(part as Read, `${prefix}${key}.`)) : [[prefix + key, part]]
    }),
  )

const objectIn = (source: Source, at: Key, given: unknown, fields: Fields): Read => {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw wrong(source, at, 'takes keys and values')
  const read: Read = {}
  for (const [key, part] of Object.entries(given)) {
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined
    if (field === undefined) throw wrong(source, [...at, key], `is no key; there are ${Object.keys(fields).join(', ')}`)
    read[key] = valueIn(source, [...at, key], part, field)
  }
  return read
}

const valueIn = (source: Source, at: Key, given: unknown, field: Field): unknown => {
  switch (field.kind) {
    case 'setting':
      return given
    case 'object':
      return objectIn(source, at, given, field.of)
    case 'list':
      if (!Array.isArray(given)) throw wrong(source, at, 'takes a list')
      return given.map((one, index) => objectIn(source, [...at, index], one, field.of))
    case 'value': {
      const node = source.document.getIn(at, true)
      const written = isScalar(node) && typeof node.source === 'string' && node.type === 'PLAIN' ? node.source : null
      const read = field.read === undefined ? given : field.read(given, written, source.isJson)
      if (matchesSchema(field.schema, read)) return read
      throw wrong(source, isSeq(node) ? firstUnfit(at, given) : at, field.takes)
    }
  }
}

/** In a list of words, the first that is none. */
const firstUnfit = (at: Key, given: unknown): Key => {
  const index = Array.isArray(given) ? given.findIndex((word) => typeof word !== 'string' || word === '') : -1
  return index === -1 ? at : [...at, index]
}

/** The files of the folder, with what else the document says of them. */
const withTree = (source: Source, tree: string, listed: readonly Read[]): Read[] => {
  const found = pathExists(tree) ? treeFiles(tree) : []
  const unfound = listed.filter(({ path: file }) => !found.some((one) => one.path === file))
  return [
    ...found.map((file) => {
      const at = listed.findIndex((one) => one['path'] === file.path)
      if (at !== -1 && listed[at]?.['content'] !== undefined)
        throw wrong(source, ['files', at, 'content'], `is also in ${path.join(tree, file.path)}`)
      return { ...file, ...listed[at] }
    }),
    ...unfound,
  ]
}

const treeFiles = (tree: string) => {
  try {
    const read = readTree(tree, mostFiles)
    if (read.kind === 'read') return read.files
    throw usageFailure(`${path.join(tree, printable(read.file))} ${read.why}.`)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw usageFailure(`${tree} cannot be read: ${errno(error) ?? 'unknown trouble'}.`)
  }
}
