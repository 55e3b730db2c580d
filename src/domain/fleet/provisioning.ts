// How far an adapter such as MAAS has brought a machine. It is the adapter's word: an identity never depends on it.

import { boundedText, entry, nodeDecided, type NodeDecided, type NodeFacts } from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import type { Provisioning } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'

export type ProvisioningReport = Pick<Provisioning, 'state' | 'detail'>

/** `report` null: no adapter looks after the machine any more. Adapters repeat themselves: only what is new is written. */
export const decideProvisioning = (
  facts: NodeFacts & { readonly report: ProvisioningReport | null },
): NodeDecided | Unchanged | Refusal => {
  const { node, by, nowMs } = facts
  const { id, epoch, membership, provisioning: before } = node.value
  if (membership.kind === 'revoked') return refuse('NODE_REVOKED')
  const report = facts.report === null ? null : { ...facts.report, detail: bounded(facts.report.detail) }
  const isSame = before?.state === report?.state
  if (isSame && before?.detail === report?.detail) return { kind: 'unchanged' }
  const sinceMs = isSame && before !== null ? before.sinceMs : nowMs
  const body = { state: report?.state ?? null, was: before?.state ?? null, detail: report?.detail ?? null }
  return nodeDecided(node, { ...node.value, provisioning: report && { ...report, sinceMs, by: by.actor } }, [
    entry(by, nowMs, 'node.provisioning_reported', { node: id, epoch }, body),
  ])
}

const bounded = (detail: string | null): string | null => (detail === null ? null : boundedText(detail))
