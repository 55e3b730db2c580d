// Which nodes are meant: all conditions hold of each. The list of nodes and plans for many nodes use the same rules.

import type { ConditionName, Membership, Node } from '#domain/core/node.ts'

/** In a filter: nodes that are in no vCluster. No vCluster can have this name. */
export const noVCluster = 'none'

export type NodeSelector = {
  /** Ids, and globs over ids; a node matches one of them. Empty: every node. */
  readonly names: readonly string[]
  readonly state: Membership['kind'] | null
  readonly profile: string | null
  /** `none`: nodes in no vCluster. */
  readonly vcluster: string | null
  readonly condition: ConditionName | null
  /** `rack` or `rack=7`; a node carries all of them. */
  readonly tags: readonly string[]
  readonly connected: boolean | null
}

export const everyNodeSelected: NodeSelector = {
  ...{ names: [], state: null, profile: null, vcluster: null, condition: null, tags: [], connected: null },
}

export const isGlob = (name: string): boolean => /[*?]/.test(name)

/** All but `names`, which is for `nameMatcher`, and `connected`, which the row of a node does not say. */
export const isSelected = (node: Node, selector: NodeSelector): boolean => {
  const { state, profile, vcluster, condition, tags } = selector
  return (
    (state === null || node.membership.kind === state) &&
    (profile === null || node.profile === profile) &&
    (vcluster === null || (node.assignment ?? noVCluster) === vcluster) &&
    (condition === null || node.conditions.some(({ name }) => name === condition)) &&
    tags.every((tag) => node.machine.tags.some((own) => isTagged(own, tag)))
  )
}

/** Made once for a list of any length: ids are looked up, only globs are tried one by one. */
export const nameMatcher = (names: readonly string[]): ((id: string) => boolean) => {
  if (names.length === 0) return () => true
  const ids = new Set(names.filter((name) => !isGlob(name)))
  const globs = names.filter(isGlob)
  return (id) => ids.has(id) || globs.some((glob) => matchesGlob(id, glob))
}

/** Ids of nodes that match begin with this, so that a walk can start and end there. */
export const commonPrefix = (names: readonly string[]): string => {
  const literals = names.map((name) => /^[^*?]*/.exec(name)?.[0] ?? '')
  const [first = '', ...others] = literals
  let length = first.length
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--
  return first.slice(0, length)
}

/** A text that is smaller than every id with this prefix and greater than every id before those. */
export const placeBefore = (prefix: string): string | null => {
  if (prefix === '') return null
  const last = prefix.length - 1
  return `${prefix.slice(0, last)}${String.fromCharCode(prefix.charCodeAt(last) - 1)}~`
}

/** `rack` also finds rack=7 and rack:7. */
const isTagged = (own: string, asked: string): boolean => {
  const tag = own.replace(':', '=')
  const wanted = asked.replace(':', '=')
  return tag === wanted || (!wanted.includes('=') && tag.startsWith(`${wanted}=`))
}

/** `*`: any text, `?`: one character. No regular expression: a glob of many stars must not cost more than its length times that of the text. */
export const matchesGlob = (text: string, glob: string): boolean => {
  let [at, wanted] = [0, 0]
  // Where the last star was, and how much of the text it has taken.
  let star: { readonly behind: number; taken: number } | null = null
  while (at < text.length) {
    const sign = glob[wanted]
    if (sign === '*') {
      star = { behind: ++wanted, taken: at }
    } else if (sign !== undefined && (sign === '?' || sign === text[at])) {
      at++
      wanted++
    } else if (star !== null) {
      at = ++star.taken
      wanted = star.behind
    } else {
      return false
    }
  }
  return [...glob.slice(wanted)].every((sign) => sign === '*')
}
