// The labels `vcluster` and `profile`. Operators make both, so there is a bound on how many pairs of them have series of their own;
// the nodes of all other pairs are added up under one. Neither stand-in can be the name of a vCluster or a profile.

export type GroupLabels = { readonly vcluster: string; readonly profile: string }

export type Groups = {
  /** Always the same object for the same pair, as long as it is kept. Null: maintenance mode. */
  of(vcluster: string | null, profile: string): GroupLabels
  all(): readonly GroupLabels[]
  /** Forgets the pairs that no node is in, so that others get their place. Those that it forgot. */
  keepOnly(used: ReadonlySet<GroupLabels>): readonly GroupLabels[]
}

export const otherGroup: GroupLabels = { vcluster: '_other', profile: '_other' }
const noVCluster = '_none'
const mostGroups = 64

export const openGroups = (most = mostGroups): Groups => {
  const known = new Map<string, GroupLabels>()
  return {
    of(vcluster, profile) {
      const key = `${vcluster ?? noVCluster}/${profile}`
      const found = known.get(key)
      if (found !== undefined) return found
      if (known.size >= most) return otherGroup
      const labels = { vcluster: vcluster ?? noVCluster, profile }
      known.set(key, labels)
      return labels
    },
    all: () => [...known.values(), otherGroup],
    keepOnly(used) {
      const unused = [...known].filter(([, labels]) => !used.has(labels))
      for (const [key] of unused) known.delete(key)
      return unused.map(([, labels]) => labels)
    },
  }
}
