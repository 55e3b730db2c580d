// The nodes that a selector means, as they are now.

import type { Row } from '#domain/core/change.ts'
import type { Node } from '#domain/core/node.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import {
  commonPrefix,
  isGlob,
  isSelected,
  nameMatcher,
  noVCluster,
  placeBefore,
  type NodeSelector,
} from '#domain/fleet/node-selector.ts'
import { mostSelected } from '#domain/plans/plan.ts'
import type { Core } from '#plane/core/core.ts'
import { nodePages } from '#plane/core/pages.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'
import type { Store } from '#plane/store/contract/store.ts'

type SelectingCore = Pick<Core, 'store' | 'timers'>

const page = 500

/** Revoked nodes only where the selector says so: by their state, or by their very ids. */
export const selectedNodes = async (
  { store, timers }: SelectingCore,
  channels: Pick<OpenChannels, 'isConnected'>,
  selector: NodeSelector,
): Promise<readonly Row<Node>[] | Refusal> => {
  const unknown = await unknownIn(store, selector)
  if (unknown !== null) return unknown
  const { names, state: membership, profile, connected } = selector
  const vcluster = selector.vcluster === noVCluster ? null : selector.vcluster
  const isNamed = nameMatcher(names)
  const ids = new Set(names.filter((name) => !isGlob(name)))
  const prefix = commonPrefix(names)
  const found: Row<Node>[] = []
  const from = placeBefore(prefix)
  const begin = from === null ? {} : { from }
  for await (const rows of nodePages(store, { limit: page, timers, membership, profile, vcluster, ...begin })) {
    for (const row of rows) {
      const { id } = row.value
      if (!id.startsWith(prefix)) return found
      if (!isNamed(id) || !isSelected(row.value, selector)) continue
      if (membership === null && row.value.membership.kind === 'revoked' && !ids.has(id)) continue
      if (connected !== null && (await channels.isConnected(id)) !== connected) continue
      if (found.length === mostSelected) return tooMany
      found.push(row)
    }
  }
  return found
}

const tooMany = refuseField(
  'REQUEST_INVALID',
  'action.select',
  `more than ${mostSelected} nodes match, which is the most for one plan: narrow it`,
)

/** A name that is wrong must not silently mean no node. */
const unknownIn = async (store: Store, { names, profile, vcluster }: NodeSelector): Promise<Refusal | null> => {
  if (profile !== null && (await store.get('profile', profile)) === null) return refuse('PROFILE_NOT_FOUND', profile)
  if (vcluster !== null && vcluster !== noVCluster) {
    const row = await store.get('vcluster', vcluster)
    if (row === null || row.value.deletedAtMs !== null) return refuse('VCLUSTER_NOT_FOUND', vcluster)
  }
  const ids = names.filter((name) => !isGlob(name))
  for (let start = 0; start < ids.length; start += page) {
    const some = ids.slice(start, start + page)
    const rows = await Promise.all(some.map((id) => store.get('node', id)))
    const missing = some.find((_, at) => rows[at] === null)
    if (missing !== undefined) return refuse('NODE_NOT_FOUND', missing)
  }
  return null
}
