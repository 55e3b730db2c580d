// Which nodes a verb is for: ids that were typed, or a selection that the plane looks for.

import { isGlob, nameMatcher } from '#domain/fleet/node-selector.ts'
import type { NodeSelection } from '#wire/plans/node-changes.ts'
import { nodeGlobShape, tagFilterShape } from '#wire/core/shapes.ts'
import { nodeName, readText } from '#cli/kit/arguments.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { filterNames, type NodeFilter, type SelectOptions } from './select-options.ts'

export type Target =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  /** Several where one request would be too long; no node is in two of them. */
  | { readonly kind: 'selections'; readonly selections: readonly NodeSelection[] }

const longestFile = 1024 * 1024

export const targetNodes = async (
  cli: Cli,
  options: SelectOptions,
  words: readonly string[],
  verb: string,
): Promise<Target> => {
  const typed = [...new Set(words.filter((word) => word !== '-').map(checkedName))]
  const file = options.from ?? (words.includes('-') ? '-' : null)
  const listed = file === null ? null : namesIn(file, await readText(cli, file, longestFile))
  const filtered = filterNames.some((name) => options[name] !== undefined)
  if (typed.length === 0 && listed === null && !filtered) {
    throw usageFailure('Which nodes?', `muster node ${verb} ID, or a selector: muster node ${verb} --help`)
  }
  // A glob narrows the list. An id beside it reads as one more node, and would be all that is left of the list.
  const beside = listed === null ? undefined : typed.find((word) => !isGlob(word))
  if (beside !== undefined) throw usageFailure(`${beside} is given beside a list of names.`, 'Put it into the list')
  if (listed === null && !filtered && !typed.some(isGlob)) return { kind: 'ids', ids: typed }
  const names = listed === null ? typed : listed.filter(nameMatcher(typed))
  if (listed !== null && names.length === 0) throw usageFailure(`No name in ${fileWords(file)} matches.`)
  const filter = selectionOf(options)
  const lots = names.length === 0 ? [[]] : inLots(names)
  return { kind: 'selections', selections: lots.map((lot) => (lot.length === 0 ? filter : { ...filter, names: lot })) }
}

const selectionOf = (filter: NodeFilter): NodeSelection => {
  const { state, profile, vcluster, condition, connected } = filter
  const tags = (filter.tag ?? []).map(checkedTag)
  return {
    ...(state === undefined ? {} : { state }),
    ...(profile === undefined ? {} : { profile }),
    ...(vcluster === undefined ? {} : { vcluster }),
    ...(condition === undefined ? {} : { condition }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(connected === undefined ? {} : { connected: connected === 'yes' }),
  }
}

/** Tags have no capitals; a rack often does. */
export const checkedTag = (given: string): string => {
  const tag = given.toLowerCase()
  if (new RegExp(`^${tagFilterShape}$`).test(tag)) return tag
  throw usageFailure(`${given} is not a tag.`, 'Write --tag KEY or --tag KEY=VALUE')
}

/** An id, or a glob over ids. */
export const checkedName = (word: string): string => {
  if (!isGlob(word)) return nodeName(word)
  if (new RegExp(`^${nodeGlobShape}$`).test(word)) return word
  throw usageFailure(`${word} is not a glob over names of nodes.`, "Use * and ? beside what names have: 'gpu-*'")
}

/** A name a line; what follows a # is a remark. */
const namesIn = (file: string, text: string): string[] => {
  const names = text.split('\n').flatMap((line) => line.replace(/#.*/, '').split(/\s+/))
  const found = [...new Set(names.filter((name) => name !== '').map(nodeName))]
  if (found.length === 0) throw usageFailure(`There are no names in ${fileWords(file)}.`)
  return found
}

const fileWords = (file: string | null): string => (file === '-' || file === null ? 'standard input' : file)

/** A request of the operator API is at most 64 KiB. */
const mostBytes = 48_000

export const inLots = (names: readonly string[]): string[][] => {
  const lots: string[][] = []
  let bytes = mostBytes
  for (const name of names) {
    bytes += name.length + 3
    if (bytes > mostBytes) {
      lots.push([])
      bytes = name.length + 3
    }
    lots.at(-1)?.push(name)
  }
  return lots
}
