// Is there a second holder of this identity? Only this module answers: for authentication, for channels that open, and for the
// flows that confirm, renew, recover and rehearse. The consequence of a yes is committed before the refusal is answered, so
// asking may write.

import { releaseAll } from '#domain/fleet/allocation.ts'
import { boundedText, type Change, type Attribution, mergeParts, withPart } from '#domain/core/change.ts'
import {
  decideDuplicate,
  decideSecondHolder,
  type DuplicateSign,
  type DuplicateVerdict,
  type HolderFacts,
  type SecondHolderFacts,
} from '#domain/identity/duplicate.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { sourceProcess, type NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import { busyOver, commitDecision, commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveAllocations } from '#plane/core/live-allocations.ts'
import { everyProgramEnded } from '#plane/core/programs-of-node.ts'
import type { Observation } from '#plane/store/contract/store.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { holderUnknown, type IdentityHolders } from './holders.ts'

export type SecondHolders = {
  /** The other holder that answers on a channel now, for a decision of the caller's own; null: there is none. */
  other(node: NodeId, instance: string | null): Promise<HolderFacts | null | Refusal>
  /** Whether this process has a channel of the node open. */
  isConnected: IdentityHolders['isConnected']
  /** Refuses a process if it is a copy of the node's identity; null: it is none, as far as is known. */
  refuseCopy(caller: Caller, sign: DuplicateSign): Promise<Refusal | null>
  /**
   * Refuses a caller with a certificate whose successor is in use. Null: the original refusal stays, since the caller is the holder
   * with a late request, or could not keep the successor, or is not known.
   */
  refuseReplaced(node: Node, caller: Caller): Promise<Refusal | null>
  /**
   * Refuses a channel with a certificate that drains to any process but the one that has replaced it. A process that was
   * never seen with it has read it from a copy: the holder of the successor made it durable before its first use.
   */
  refuseDraining(principal: NodePrincipal, evidence: AgentEvidence | null, correlation: string): Promise<Refusal | null>
  /** Whether this process is known to have moved on to the node's current certificate. */
  isCurrent: IdentityHolders['isCurrent']
  /**
   * Commits what a decision has made of two holders, and returns the refusal. `decide-again`: something had the time to
   * change. Not rate-limited: a copy must not avoid being fenced by sending fast.
   */
  settle(node: NodeId, verdict: Duplicate): Promise<Refusal | 'lost-race' | 'decide-again'>
  /** Writes down that another process uses, or wants, the identity. Best effort: the request that shows it is refused anyway. */
  report(holder: ReportedHolder): Promise<void>
}

/** A caller in the name of a node. */
export type Caller = {
  readonly node: NodeId
  /** Null: an agent that does not say who it is. */
  readonly evidence: AgentEvidence | null
  /** As `Session.process`; left out: the instance of its evidence. */
  readonly process?: string | null
  readonly source: string
  /** Of the certificate it presented; null: none. */
  readonly serial: string | null
  readonly correlation: string | null
}

export type Duplicate = Exclude<DuplicateVerdict, { kind: 'claimant-stays' }>

export type ReportedHolder = Omit<SecondHolderFacts, 'node' | 'nowMs'> & { readonly node: NodeId }

type HolderCore = Omit<FlowCore, 'random'>
type Holders = Omit<IdentityHolders, 'opened'>

export const openSecondHolders = (core: HolderCore, holders: Holders): SecondHolders => {
  return {
    other: (node, instance) => otherHolder(holders, node, instance),
    isConnected: holders.isConnected,
    isCurrent: holders.isCurrent,
    refuseCopy: (caller, sign) => refuseCopy(core, holders, caller, sign),
    refuseReplaced: (node, caller) => refuseReplaced(core, holders, node, caller),
    refuseDraining: (principal, evidence, correlation) =>
      refuseDraining(core, holders, principal, evidence, correlation),
    settle: (node, verdict) => settle(core, holders, node, verdict),
    report: (holder) => report(core, holder),
  }
}

const otherHolder = async (
  holders: Holders,
  node: NodeId,
  instance: string | null,
): Promise<HolderFacts | null | Refusal> => {
  const live = await holders.other(node, instance)
  if (live === 'unknown') return holderUnknown(node)
  if (live === null) return null
  const facts = callerFacts(live.evidence, live.source, live.serial)
  return live.evidence === null ? { ...facts, instance: sourceProcess(live.source) } : facts
}

const copyTries = { tries: 8, onBusy: busyOver('node') }

/** The one that stays is decided on whether another process answers on a channel just now. */
const refuseCopy = (
  core: HolderCore,
  holders: Holders,
  caller: Caller,
  sign: DuplicateSign,
): Promise<Refusal | null> => {
  const { evidence, source, serial } = caller
  const { process = evidence === null ? null : evidence.instance } = caller
  const actor = `node:${caller.node}`
  const by: Attribution = { actor, source, correlation: caller.correlation }
  return retryLostRaces(copyTries, async () => {
    const other = await otherHolder(holders, caller.node, process)
    if (isRefusal(other)) return other
    const node = await core.store.get('node', caller.node)
    const profile = node === null ? null : await core.store.get('profile', node.value.profile)
    const domain = await core.store.get('domain', 'domain')
    if (node === null || profile === null || domain === null) return null
    const verdict = decideDuplicate({
      ...{ node, profile, domain, sign, by, nowMs: core.clock.nowMs() },
      claimant: callerFacts(evidence, source, serial),
      claimantLive: false,
      otherHolder: other,
      lastSeen: lastSeenFacts(node.value, await core.store.observation(caller.node)),
    })
    if (verdict.kind === 'claimant-stays') {
      if (verdict.suspicion === null) return null
      await report(core, { node: caller.node, condition: 'duplicate_identity', ...verdict.suspicion, by })
      return null
    }
    const outcome = await settle(core, holders, caller.node, verdict)
    return isRefusal(outcome) ? { ...outcome, about: { node: caller.node, actor } } : outcome
  })
}

const refuseReplaced = async (
  core: HolderCore,
  holders: Holders,
  node: Node,
  caller: Caller,
): Promise<Refusal | null> => {
  const { evidence, source, serial, correlation } = caller
  if (evidence !== null) {
    const isCurrent = await holders.isCurrent(node, evidence.instance)
    if (isCurrent === 'unknown') return holderUnknown(node.id)
    return isCurrent ? null : refuseCopy(core, holders, caller, 'replaced-serial')
  }
  await report(core, {
    node: node.id,
    condition: 'duplicate_identity',
    reason: 'a certificate that was replaced is still being used',
    evidence: { source, serial },
    by: { actor: `node:${node.id}`, source, correlation },
  })
  return null
}

const refuseDraining = async (
  core: HolderCore,
  holders: Holders,
  { id, credential, source, evidenceOnly, draining }: NodePrincipal,
  evidence: AgentEvidence | null,
  correlation: string,
): Promise<Refusal | null> => {
  if (evidence === null || evidenceOnly || draining !== true) return null
  const node = await core.store.get('node', id)
  if (node === null) return null
  const { instance } = evidence
  const observed = await core.store.observation(id)
  if (observed.evidence?.instance === instance || observed.report?.instance === instance) return null
  const isHolder = (await holders.isConnected(id, instance)) || (await holders.isCurrent(node.value, instance))
  if (isHolder === 'unknown') return holderUnknown(id)
  if (isHolder) return null
  return refuseCopy(
    core,
    holders,
    { node: id, source, serial: credential.serial, evidence, correlation },
    'draining-serial',
  )
}

const settle = async (
  core: HolderCore,
  holders: Holders,
  node: NodeId,
  verdict: Duplicate,
): Promise<Refusal | 'lost-race' | 'decide-again'> => {
  if (verdict.change === null) return verdict.refusal
  // Only an operator undoes a fence. A copy must not be able to lay one by waiting for a plane to restart.
  const returned = verdict.kind === 'fenced' ? await holders.awaitReturn(node) : 'nothing'
  if (returned === 'unknown') return holderUnknown(node)
  if (returned === 'waited') return 'decide-again'
  const outcome = await commitOnce(core, await wholeChange(core, verdict, verdict.change))
  return outcome === 'lost-race' ? outcome : verdict.refusal
}

/** A node that is fenced loses its work with its identity, like any other in quarantine. */
const wholeChange = async (core: HolderCore, verdict: Duplicate, change: Change): Promise<Change> => {
  if (verdict.kind !== 'fenced') return change
  const allocations = await liveAllocations(core.store, verdict.fence.node.value.id)
  const why = `its node was quarantined: ${verdict.fence.why}`
  const { node, by, nowMs } = verdict.fence
  const { clockToleranceMs: toleranceMs } = (await domainSettingsRow(core.store)).value
  const ending = { why: boundedText(why), reason: 'key-compromise', toleranceMs, by, nowMs } as const
  const ended = await everyProgramEnded(core.store, node.value.id, ending)
  return withPart(change, mergeParts([releaseAll({ ...verdict.fence, allocations, why }), ended]))
}

const reportTries = { tries: 4, onBusy: busyOver('node') }

const report = async (core: HolderCore, holder: ReportedHolder): Promise<void> => {
  const decide = async () => {
    const node = await core.store.get('node', holder.node)
    if (node === null) return { kind: 'known' } as const
    return decideSecondHolder({ ...holder, node, nowMs: core.clock.nowMs() })
  }
  await commitDecision(core, decide, reportTries)
}

/** `evidence` is null where an older agent asks. */
export const callerFacts = (
  evidence: AgentEvidence | null,
  source: string | null,
  serial: string | null,
): HolderFacts => ({
  instance: evidence === null ? null : evidence.instance,
  source,
  macs: evidence === null ? [] : evidence.hardware.macs,
  bmcSerial: evidence === null ? null : evidence.hardware.bmc_serial,
  machine: evidence === null ? null : evidence.machine,
  serial,
  agentVersion: evidence === null ? null : evidence.agent_version,
})

/** Null: nothing was ever seen of it. */
export const lastSeenFacts = (node: Node, observed: Observation): HolderFacts | null => {
  const { lastSeenMs, source, agentVersion, report: reported, evidence } = observed
  if (lastSeenMs === null) return null
  const slots = slotsOf(node)
  const serial = slots === null ? null : slots.current.serial
  if (evidence !== null) return callerFacts(evidence, source, serial)
  return {
    instance: reported === null ? null : reported.instance,
    source,
    macs: node.hardware.macs,
    bmcSerial: node.hardware.bmcSerial,
    machine: null,
    serial,
    agentVersion,
  }
}
