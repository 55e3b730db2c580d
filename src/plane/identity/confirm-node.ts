// The explicit confirmation of document 002. It is one way of using a certificate first; an agent that could not keep what
// it was given says so here.

import { decideClear, decideRaise } from '#domain/core/conditions.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Node } from '#domain/core/node.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { slotNameOf, slotsOf } from '#domain/core/certificate.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import type { SecondHolders } from './second-holder.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type ConfirmParts = {
  readonly writeLimit: WriteLimit
  readonly secondHolders: Pick<SecondHolders, 'refuseCopy'>
}

export type ConfirmCall = {
  readonly confirmation: Confirmation
  readonly evidence: AgentEvidence | null
  readonly correlation: string
}

export type Confirmation = { readonly persisted: boolean; readonly detail: string | null }

export const confirmNode = async (
  core: FlowCore,
  { writeLimit, secondHolders }: ConfirmParts,
  principal: NodePrincipal,
  { confirmation, evidence, correlation }: ConfirmCall,
): Promise<{ readonly kind: 'confirmed'; readonly node: Node } | Refusal> => {
  const { id: node, source, credential } = principal
  // What is said of the node here is said by the process that is connected, where there is one.
  const caller = { node, source, evidence, correlation, serial: credential.serial }
  const copy = await secondHolders.refuseCopy(caller, 'second-instance')
  if (copy !== null) return copy
  const standing = await useCertificate(core, principal, correlation)
  if (standing.kind === 'refused') return standing
  if (!principal.evidenceOnly) await notePersistence(core, writeLimit, principal, confirmation, correlation)
  return { kind: 'confirmed', node: standing.node.value }
}

/** Raises or clears `not_persisted`, where it changes. */
export const notePersistence = async (
  core: FlowCore,
  writeLimit: WriteLimit,
  principal: NodePrincipal,
  { persisted, detail }: Confirmation,
  correlation: string,
): Promise<void> => {
  const node = await core.store.get('node', principal.id)
  if (node === null) return
  const by = { actor: actorOf(principal), source: principal.source, correlation }
  const facts = { node, by, nowMs: core.clock.nowMs(), name: 'not_persisted' } as const
  // A process that still uses the previous certificate does not have the newer one, so its report does not count.
  if (usesReplaced(node.value, principal)) return
  const reason = detail ?? 'the agent could not write its credentials'
  const verdict = persisted ? decideClear(facts) : decideRaise({ ...facts, reason, evidence: {} })
  if (verdict.kind === 'unchanged' || writeLimit.take(principal.id) !== null) return
  // What is lost to a race or to the write limit, the agent says again.
  await commitOnce(core, verdict.change)
}

const usesReplaced = (node: Node, { credential }: NodePrincipal): boolean => {
  const slots = slotsOf(node)
  return slots !== null && slotNameOf(slots, credential.issuer, credential.serial) === 'retired'
}
