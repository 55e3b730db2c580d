// Every authenticated request of a node starts here: if this is the first use of its certificate, that is committed
// before anything else happens (a first use confirms an enrollment, completes a renewal, or ends an absence).

import { decideFirstUse } from '#domain/node/first-use.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Row, Attribution } from '#domain/core/change.ts'
import { decideRaise } from '#domain/core/conditions.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { commitOnce, nodeTries, retryLostRaces } from './commit-decision.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { FlowCore } from '#plane/core/core.ts'

export type InUse = {
  readonly kind: 'in-use'
  readonly node: Row<Node>
  readonly profile: Row<Profile>
  readonly domain: Row<DomainSettings>
}

export const useCertificate = (
  core: FlowCore,
  principal: NodePrincipal,
  correlation: string,
): Promise<InUse | Refusal> => {
  const by = { actor: actorOf(principal), source: principal.source, correlation }
  return retryLostRaces(nodeTries, async () => {
    const read = await readNode(core.store, principal.id)
    if (isRefusal(read)) return read
    if (principal.evidenceOnly) return showsEvidence(read, principal)
    const verdict = decideFirstUse({ ...read, principal, by, nowMs: core.clock.nowMs() })
    if (verdict.kind === 'refused') {
      if (verdict.code === 'APPROVAL_REQUIRED') await askForApproval(core, read.node, by)
      return verdict
    }
    if (verdict.kind === 'nothing-new') return { kind: 'in-use', ...read }
    const committed = await commitOnce(core, verdict.change)
    if (committed === 'lost-race') return committed
    // As it was committed: what others have done to it since is found by those who look at the deny-list behind this.
    return { kind: 'in-use', ...read, node: { version: read.node.version + 1, value: verdict.node } }
  })
}

/** A repaired node in quarantine uses its certificate to show its evidence; that alone changes nothing. */
const showsEvidence = (read: Omit<InUse, 'kind'>, principal: NodePrincipal): InUse | Refusal => {
  const { membership, epoch } = read.node.value
  if (epoch !== principal.epoch) return refuse('CLIENT_CERT_DENIED')
  if (membership.kind === 'quarantined' && membership.slots !== null) return { kind: 'in-use', ...read }
  return { ...refuse('BUSY', 'its quarantine has just ended'), retryAfterMs: 1000 }
}

const readNode = async (store: Store, id: string): Promise<Omit<InUse, 'kind'> | Refusal> => {
  const node = await store.get('node', id)
  if (node === null) return refuse('CLIENT_CERT_UNKNOWN')
  const profile = await store.get('profile', node.value.profile)
  const domain = await store.get('domain', 'domain')
  if (profile === null || domain === null) return refuse('PROFILE_NOT_FOUND', node.value.profile)
  return { node, profile, domain }
}

/** Shows operators that an approval is awaited. A lost race is ignored: the node asks again. */
const askForApproval = async (core: FlowCore, node: Row<Node>, by: Attribution): Promise<void> => {
  const reason = 'it lapsed, and its profile lets people decide about its return'
  const verdict = decideRaise({ node, name: 'needs_approval', reason, evidence: {}, by, nowMs: core.clock.nowMs() })
  if (verdict.kind === 'unchanged') return
  await commitOnce(core, verdict.change)
}
