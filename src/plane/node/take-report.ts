// What an agent reports of its node: kept as the last thing known, and decided on where it changes what the registry says.
// A report says all of it, so what is lost to a race or to the write limit comes with the next one.

import type { Row, Attribution, NodeDecided, NodeFacts } from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { actorOf, type NodePrincipal } from '#domain/core/principal.ts'
import { decideRehearsalReported } from '#domain/recovery/rehearsal.ts'
import { decideRepairEvidence, repairChecksOf } from '#domain/recovery/repair.ts'
import { decideReported } from '#domain/node/reported-conditions.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { ReportBody } from '#wire/node/report.ts'
import { busyOver, commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { WriteLimit } from '#plane/limits/write-limit.ts'
import type { ReportIntake } from './report-intake.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Store } from '#plane/store/contract/store.ts'

export type ReportParts = { readonly writeLimit: WriteLimit; readonly reports: ReportIntake }

export type Reporter = {
  readonly principal: NodePrincipal
  readonly evidence: AgentEvidence | null
  readonly correlation: string
}

export type TakenReport = {
  /** The highest number of that process taken by now: what the agent may forget up to. */
  readonly number: number
  /** The row that the report was decided on; null: it was not taken, or nothing in it is decided on. */
  readonly node: Node | null
}

export const takeReport = async (
  core: FlowCore,
  { writeLimit, reports }: ReportParts,
  { principal, evidence, correlation }: Reporter,
  report: ReportBody,
): Promise<TakenReport> => {
  const by: Attribution = { actor: actorOf(principal), source: principal.source, correlation }
  let seen: Node | null = null
  const commit: CommitNews = (decide) =>
    commitNews(core, writeLimit, principal.id, (node, nowMs) => {
      seen = node.value
      return decide({ node, by, nowMs })
    })
  if ((await reports.take(principal.id, report)) === 'taken') {
    if (principal.evidenceOnly) await noteEvidence(core.store, commit, principal, evidence, report)
    else await noteReported(core, commit, principal.id, report)
  }
  return { number: (await reports.lastTaken(principal.id, report.instance)) ?? 0, node: seen }
}

type CommitNews = (decide: (facts: NodeFacts) => NodeDecided | Unchanged) => Promise<void>

const noteReported = async (core: FlowCore, commit: CommitNews, node: NodeId, report: ReportBody): Promise<void> => {
  await commit((facts) => decideReported({ ...facts, reported: report.conditions }))
  const { rehearsal } = report
  // A passed rehearsal is already recorded by the plane, which took part in it; the agent's report of it does not count.
  if (rehearsal === null || rehearsal.outcome !== 'failed') return
  const atMs = parseIsoTime(rehearsal.at)
  if (atMs === null) return
  const { step, why } = rehearsal
  core.store.observe(node, { rehearsedAtMs: Math.min(atMs, core.clock.nowMs()) })
  const { clockToleranceMs } = (await domainSettingsRow(core.store)).value
  await commit((facts) =>
    // What failed with an earlier certificate has been tried again since, or will be.
    isOlder(facts.node, atMs + clockToleranceMs)
      ? { kind: 'unchanged' }
      : decideRehearsalReported({ ...facts, step: step ?? 'endpoint', why: why ?? 'unknown', atMs }),
  )
}

const isOlder = ({ value }: Row<Node>, atMs: number): boolean => {
  const slots = slotsOf(value)
  return slots === null || atMs < slots.current.issuedAtMs
}

/** The evidence of a repaired machine in quarantine: its own report, except for the rehearsal, which the plane recorded. */
const noteEvidence = async (
  store: Store,
  commit: CommitNews,
  principal: NodePrincipal,
  evidence: AgentEvidence | null,
  report: ReportBody,
): Promise<void> => {
  const domain = await domainSettingsRow(store)
  const node = await store.get('node', principal.id)
  const profile = node === null ? null : await store.get('profile', node.value.profile)
  if (profile === null) return
  const { macs, bmc_serial: bmcSerial } = evidence?.hardware ?? { macs: [], bmc_serial: null }
  const shown = {
    hardware: { macs, bmcSerial },
    clockSkewMs: report.clock_skew_ms,
    identityWritable: report.storage.identity_writable,
    diskReserve: report.storage.reserve,
    profile: profile.value,
    domain: domain.value,
  }
  await commit((facts) =>
    facts.node.value.epoch === principal.epoch
      ? decideRepairEvidence({ ...facts, checks: repairChecksOf({ ...shown, node: facts.node.value }) })
      : { kind: 'unchanged' },
  )
}

/** A report that is not committed is repeated by the next one. */
const tries = { tries: 4, onBusy: busyOver('node') }

const commitNews = async (
  core: FlowCore,
  writeLimit: WriteLimit,
  id: NodeId,
  decide: (node: Row<Node>, nowMs: number) => NodeDecided | Unchanged,
): Promise<void> => {
  const news = async (): Promise<NodeDecided | Unchanged> => {
    const node = await core.store.get('node', id)
    if (node === null) return { kind: 'unchanged' }
    const verdict = decide(node, core.clock.nowMs())
    return verdict.kind === 'decided' && writeLimit.take(id) !== null ? { kind: 'unchanged' } : verdict
  }
  await commitDecision(core, news, tries)
}
