// The alerts of an enrollment: of some that were refused, and of one that took an active identity by hardware alone.

import { alertKey } from '#domain/alerts/alert.ts'
import { withAlert } from '#domain/alerts/alert-decisions.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { Admission, EnrollFacts } from '#domain/enrollment/enrollment.ts'
import { judgeIdentityProof } from '#domain/enrollment/identity-proof.ts'
import { isAlarming, supersessionAlert } from '#domain/enrollment/supersession.ts'
import { suspicionOf } from '#domain/identity/duplicate.ts'
import type { Recorded } from '#domain/identity/node-certificate.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { raiseAlert } from '#plane/alerts/reconcile-alerts.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { CopiedImages } from '#plane/identity/copied-images.ts'
import { callerFacts, lastSeenFacts, type SecondHolders } from '#plane/identity/second-holder.ts'
import { sortableId } from '#platform/random.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'

export type ReportingParts = {
  readonly secondHolders: Pick<SecondHolders, 'report'>
  readonly copiedImages: CopiedImages
}

type Caller = { readonly evidence: AgentEvidence | null; readonly source: string }

/** Committed before the refusal is answered. */
export const reportRefusal = async (
  core: FlowCore,
  { secondHolders, copiedImages }: ReportingParts,
  caller: Caller,
  facts: EnrollFacts,
  { code }: Refusal,
): Promise<void> => {
  switch (code) {
    case 'ALREADY_ACTIVE':
      return reportSpoof(secondHolders, facts)
    case 'DUPLICATE_IDENTITY':
      return reportCopy(core, secondHolders, caller, facts)
    case 'KEY_IN_USE':
      return copiedImages.raise(facts.nodeId, facts.keyClaims, facts.by.source)
    case 'TOKEN_USED':
      return raiseTokenReused(core, facts)
    default:
  }
}

const reportSpoof = async (
  secondHolders: ReportingParts['secondHolders'],
  { node, credential, key, by }: EnrollFacts,
): Promise<void> => {
  if (node === null) return
  await secondHolders.report({
    node: node.value.id,
    condition: 'spoof_suspected',
    reason: 'another key asked for this identity while the node is active',
    evidence: {
      source: by.source,
      method: credential.method,
      key: key.kind === 'key' ? `SHA256:${key.spkiHash}` : null,
    },
    by,
  })
}

/** The caller has proven an earlier generation of the identity (ruling 23). Both are named: a person decides between them. */
const reportCopy = async (
  { store }: FlowCore,
  secondHolders: ReportingParts['secondHolders'],
  { evidence, source }: Caller,
  { node, proof, by }: EnrollFacts,
): Promise<void> => {
  if (node === null || proof === null) return
  const sign = judgeIdentityProof(node.value, proof)
  if (sign === 'newest' || sign === 'nothing') return
  const claimant = callerFacts(evidence, source, null)
  const lastSeen = lastSeenFacts(node.value, await store.observation(node.value.id))
  const suspicion = suspicionOf({ node, sign, claimant, otherHolder: null, lastSeen })
  await secondHolders.report({ node: node.value.id, condition: 'duplicate_identity', ...suspicion, by })
}

/** The machine that used the token repeats its request with the same key: another key is another machine, or a new installation. */
const raiseTokenReused = async (core: FlowCore, { credential, key, by }: EnrollFacts): Promise<void> => {
  if (credential.method !== 'token' || key.kind !== 'key') return
  const { id, state } = credential.token.value
  if (!('spki' in state) || state.spki === key.spkiHash) return
  const evidence = { token: id, usedBy: state.node, source: by.source }
  await raiseAlert(core, wantedAlert('token_reused', id, evidence, { node: state.node }))
}

/** An active identity that was taken over by hardware alone is for an operator to look at. */
export const withSupersessionAlert = async (
  core: FlowCore,
  admission: Admission,
  record: Recorded,
): Promise<Recorded> => {
  if (admission.supersedes !== 'an active identity' || !isAlarming(admission)) return record
  const about = { kind: 'superseded_by_hardware', subject: admission.before.id } as const
  const existing = await core.store.get('alert', alertKey(about))
  const alert = supersessionAlert(admission, existing, sortableId(admission.facts.nowMs, core.random))
  return { ...record, change: withAlert(record.change, alert) }
}
