// What the store has of the programs of one node and of its names. Read behind the row of the node: every change of them writes
// that row, so what is found is at least as new.

import type { ChangePart, Row } from '#domain/core/change.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import type { VCluster } from '#domain/fleet/vcluster.ts'
import { wildcardOver, type NameClaim } from '#domain/programs/name-claim.ts'
import type { ClaimFact } from '#domain/programs/node-names.ts'
import { programKey, programsEnded, type EndingFacts, type Program } from '#domain/programs/program.ts'
import { rowPages } from './pages.ts'
import type { Store } from '#plane/store/contract/store.ts'

type Reading = Pick<Store, 'get' | 'list'>

/** Of every epoch. */
export const programsOf = async (store: Reading, node: NodeId): Promise<readonly Row<Program>[]> => {
  const found: Row<Program>[] = []
  for await (const page of rowPages(store, 'program', programKey, { where: { node } })) found.push(...page)
  return found
}

export const namesHeldBy = async (store: Reading, node: NodeId): Promise<readonly Row<NameClaim>[]> => {
  const found: Row<NameClaim>[] = []
  for await (const page of rowPages(store, 'name-claim', ({ name }) => name, { where: { node } })) found.push(...page)
  return found
}

export const claimFacts = (store: Reading, names: readonly string[], node: NodeId): Promise<readonly ClaimFact[]> =>
  Promise.all(
    names.map(async (name) => {
      const claim = await store.get('name-claim', name)
      const held = claim?.value.holder
      const isForeign = held?.kind === 'node' && held.node !== node
      const over = wildcardOver(name)
      return {
        name,
        claim,
        holder: isForeign ? await store.get('node', held.node) : null,
        wildcard: over === null ? null : await store.get('name-claim', over),
      }
    }),
  )

/** Null: maintenance mode, or it is gone by now. */
export const vclusterOf = async (store: Reading, { assignment }: Node): Promise<Row<VCluster> | null> => {
  const row = assignment === null ? null : await store.get('vcluster', assignment)
  return row === null || row.value.deletedAtMs !== null ? null : row
}

/** Denies every leaf of its programs, in the change that ends its identity. */
export const everyProgramEnded = async (
  store: Reading,
  node: NodeId,
  facts: Omit<EndingFacts, 'programs'>,
): Promise<Required<ChangePart>> => programsEnded({ ...facts, programs: await programsOf(store, node) })
