// Purges the record of a revoked node: reads every row that names it, and lets the domain decide. Only a plan comes here.

import { alertKey } from '#domain/alerts/alert.ts'
import type { Attribution, Decided, Row, RowKind, RowTypes } from '#domain/core/change.ts'
import { certificateKey, epochDenialKey, programsHolder } from '#domain/core/certificate.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { programKey } from '#domain/programs/program.ts'
import { decidePurge, purgeBarred, purgeParts, type PurgeFacts, type RowsOfNode } from '#domain/revocation/purge.ts'
import { busyOver, commitDecision, commitOnce, retryLostRaces, type Done } from '#plane/core/commit-decision.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { formerNode } from '#plane/core/former-node.ts'
import { openLivedTime } from '#plane/core/lived-time.ts'
import { rowPages } from '#plane/core/pages.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** `onlyIf`: what has to be so besides; null: it is. */
export const purgeNode = async (
  core: FlowCore,
  id: NodeId,
  reason: string,
  by: Attribution,
  onlyIf: (node: Row<Node>) => Refusal | null,
): Promise<Done<Decided> | Refusal> => {
  const read = async (): Promise<PurgeFacts | Refusal> => {
    const facts = await readPurge(core, id)
    if (isRefusal(facts)) return facts
    return onlyIf(facts.node) ?? purgeBarred(facts) ?? { ...facts, reason, by }
  }
  return (
    (await purgeMost(core, read)) ??
    commitDecision(core, async () => {
      const facts = await read()
      return isRefusal(facts) ? facts : decidePurge(facts)
    })
  )
}

/** Commits the parts that come before the last. After a crash in between the node is a tombstone as before, and can be purged again. */
const purgeMost = (core: FlowCore, read: () => Promise<PurgeFacts | Refusal>): Promise<Refusal | null> =>
  retryLostRaces({ tries: 8, onBusy: busyOver('node') }, async () => {
    const facts = await read()
    if (isRefusal(facts)) return facts
    for (const part of purgeParts(facts)) {
      if ((await commitOnce(core, part)) === 'lost-race') return 'lost-race'
    }
    return null
  })

export const readPurge = async (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  id: NodeId,
): Promise<Omit<PurgeFacts, 'reason' | 'by'> | Refusal> => {
  // Replicas of the release before would register the name anew with epoch 1.
  if (store.unfinishedUpgrade() !== null) return refuse('UPGRADE_UNFINISHED', 'a node is purged')
  const node = await store.get('node', id)
  if (node === null) return refuse('NODE_NOT_FOUND', id)
  return {
    node,
    former: await formerNode(store, id),
    rows: await rowsOfNode(store, node.value),
    livedMs: await openLivedTime(store, clock).nowMs(),
    nowMs: clock.nowMs(),
  }
}

const rowsOfNode = async (store: Store, { id, epoch }: Node): Promise<RowsOfNode> => {
  const every = async <K extends RowKind>(
    kind: K,
    keyOf: (value: RowTypes[K]) => string,
    where: Readonly<Record<string, string | number>> = { node: id },
  ): Promise<readonly Row<RowTypes[K]>[]> => (await Array.fromAsync(rowPages(store, kind, keyOf, { where }))).flat()
  const epochs = Array.from({ length: epoch }, (_, at) => at + 1)
  const denials = await Promise.all(epochs.map((one) => store.get('denial', epochDenialKey(id, one))))
  const shared = await every('key-claim', ({ spki }) => spki, { shared: 1 })
  const certificatesOf = (node: string) =>
    every('certificate', ({ issuer, serial }) => certificateKey(issuer, serial), { node })
  return {
    certificates: [...(await certificatesOf(id)), ...(await certificatesOf(programsHolder(id)))],
    programs: await every('program', programKey),
    denials: denials.filter((row) => row !== null),
    tokens: await every('token', ({ hash }) => hash),
    receipts: await every('receipt', (receipt) => receipt.id),
    alerts: await every('alert', alertKey),
    allocations: await every('allocation', (allocation) => allocation.id),
    keyClaims: [
      ...(await every('key-claim', ({ spki }) => spki, { holder: id, shared: 0 })),
      ...shared.filter(({ value }) => value.holders.some(({ node }) => node === id)),
    ],
    wireguardKeys: await every('wireguard-key', ({ publicKey }) => publicKey),
    addresses: await every('overlay-address', ({ address }) => address),
    names: await every('name-claim', ({ name }) => name),
  }
}
