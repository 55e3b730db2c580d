// A vCluster: the logical group a node is assigned to. It never touches a certificate.

import { noVCluster } from './node-selector.ts'
import { isSameOverlay, overlayChanges, overlayProblem, noOverlay, type Overlay } from './overlay.ts'
import { policyRules, type Policy } from './policy.ts'
import { namedByOutputs, signedByThem } from '#domain/issuers/named-issuer.ts'
import { noOutputs, type Output } from '#domain/programs/output.ts'
import { outputsRule } from '#domain/programs/output-rules.ts'
import {
  readOf,
  type Read,
  type Row,
  type RowTypes,
  boundedText,
  decided,
  entry,
  type Attribution,
  type Decided,
} from '#domain/core/change.ts'
import type { Unchanged } from '#domain/core/conditions.ts'
import { maintenancePolicy } from '#domain/core/domain-settings.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { noTasks, taskTypesRule, type AllowedTasks } from '#domain/core/task-types.ts'
import {
  changesOf,
  keptValue,
  oneOf,
  printable,
  settingRefusal,
  settingsIn,
  settingsTree,
  withSetting,
  yesOrNo,
  type Rules,
  type Tree,
} from '#domain/core/settings-check.ts'

export const peerings = ['mesh', 'isolated'] as const

export type VCluster = {
  readonly name: string
  readonly description: string
  /** Counts its changes; goes on over a deletion, so that no revision ever means two things. */
  readonly revision: number
  readonly policy: Policy
  readonly overlay: Overlay
  /** Leaves for the programs of its nodes, beside those of their profiles. */
  readonly outputs: readonly Output[]
  /** What may be queued for its nodes. */
  readonly tasks: AllowedTasks
  /** `mesh`: its nodes are WireGuard peers of every node that is not isolated. `isolated`: of each other only. */
  readonly peering: (typeof peerings)[number]
  /** It accepts no further nodes: about to be deleted, or closed by an operator. */
  readonly closed: boolean
  readonly createdAtMs: number
  readonly createdBy: string
  /** Deleted: a tombstone, which a new one of the same name takes over. */
  readonly deletedAtMs: number | null
}

// vClusters, as platform-admins make, change and delete them. Their nodes get the change; no certificate changes.

export const vclusterRules: Rules = {
  description: printable(256),
  peering: oneOf(peerings),
  closed: yesOrNo,
  ...policyRules('policy'),
  outputs: outputsRule,
  'tasks.types': taskTypesRule,
}

/** The settings of a vCluster as a document has them, without its name and its overlay. */
export const vclusterDocument = (vcluster: VCluster): Tree => settingsTree(vclusterRules, vcluster)
export const settingsOfVCluster = (document: Tree) => settingsIn(vclusterRules, document)

/** What of a vCluster is to be otherwise. */
export type VClusterChanges = {
  readonly set: Readonly<Record<string, unknown>>
  /** Replaces the one there is, as a whole; null: that stays. */
  readonly overlay: Overlay | null
}

export type VClusterDecided = Decided & { readonly vcluster: VCluster }

type Circumstances = { readonly by: Attribution; readonly nowMs: number }

/** Every outside issuer there is or was: outputs name them. */
type WithIssuers = { readonly issuers: readonly Row<RowTypes['outside-issuer']>[] }

export type CreateVClusterFacts = VClusterChanges &
  Circumstances &
  WithIssuers & { readonly name: string; readonly existing: Row<VCluster> | null }

export const decideCreateVCluster = (facts: CreateVClusterFacts): VClusterDecided | Refusal => {
  const { name, existing, by, nowMs } = facts
  if (existing !== null && existing.value.deletedAtMs === null) return refuse('VCLUSTER_EXISTS', name)
  if (name === noVCluster)
    return refuseField('VCLUSTER_INVALID', 'name', `${noVCluster} stands for nodes in no vCluster`)
  const vcluster = changed(
    {
      name,
      description: '',
      revision: (existing?.value.revision ?? 0) + 1,
      policy: maintenancePolicy,
      overlay: noOverlay,
      outputs: noOutputs,
      tasks: noTasks,
      peering: 'mesh',
      closed: false,
      createdAtMs: nowMs,
      createdBy: by.actor,
      deletedAtMs: null,
    },
    facts,
  )
  if ('kind' in vcluster) return vcluster
  const signed = signedByThem(namedByOutputs(vcluster.outputs), facts.issuers)
  if (isRefusal(signed)) return signed
  return written(existing, vcluster, [entry(by, nowMs, 'vcluster.created', {}, said(vcluster))], signed)
}

export type ChangeVClusterFacts = VClusterChanges & Circumstances & WithIssuers & { readonly vcluster: Row<VCluster> }

/** An unchanged document makes no revision: operators who keep vClusters in files may apply them every hour. */
export const decideChangeVCluster = (facts: ChangeVClusterFacts): VClusterDecided | Unchanged | Refusal => {
  const { vcluster: row, set, overlay, by, nowMs } = facts
  if (row.value.deletedAtMs !== null) return refuse('VCLUSTER_NOT_FOUND', row.value.name)
  const vcluster = changed(row.value, facts)
  if ('kind' in vcluster) return vcluster
  const replaced = overlay !== null && !isSameOverlay(overlay, row.value.overlay)
  const changes = [
    ...changesOf(row.value, vcluster, Object.keys(set)).map((line) => boundedText(line)),
    ...(replaced ? [overlayLine(row.value.overlay, overlay)] : []),
  ]
  if (changes.length === 0) return { kind: 'unchanged' }
  const signed = signedByThem(namedByOutputs(vcluster.outputs, row.value.outputs), facts.issuers)
  if (isRefusal(signed)) return signed
  const next = { ...vcluster, revision: row.value.revision + 1 }
  return written(row, next, [entry(by, nowMs, 'vcluster.changed', {}, { ...said(next), changes })], signed)
}

/**
 * The caller has found no nodes in it. That none comes in meanwhile is known by one of two: it was closed before the look, and an
 * assignment relies on the row that says it is open; or, with `guarded`, the store looks again in the commit.
 */
export const decideDeleteVCluster = ({
  vcluster: row,
  guarded,
  by,
  nowMs,
}: Circumstances & { readonly vcluster: Row<VCluster>; readonly guarded: boolean }): VClusterDecided | Refusal => {
  const { value } = row
  if (value.deletedAtMs !== null) return refuse('VCLUSTER_NOT_FOUND', value.name)
  if (!guarded && !value.closed) return refuse('VCLUSTER_IN_USE', `${value.name} has been opened again meanwhile`)
  const bare = { overlay: noOverlay, outputs: noOutputs, tasks: noTasks }
  const deleted = { ...value, ...bare, revision: value.revision + 1, deletedAtMs: nowMs }
  const verdict = written(row, deleted, [entry(by, nowMs, 'vcluster.deleted', {}, said(deleted))])
  if (!guarded) return verdict
  return { ...verdict, change: { ...verdict.change, unused: [{ kind: 'vcluster', name: value.name }] } }
}

const changed = (vcluster: VCluster, { set, overlay }: VClusterChanges): VCluster | Refusal => {
  let result = overlay === null ? vcluster : { ...vcluster, overlay }
  for (const [key, value] of Object.entries(set)) {
    const no = settingRefusal('VCLUSTER_INVALID', vclusterRules, key, value)
    if (no !== null) return no
    result = withSetting(result, key, keptValue(vclusterRules, key, value))
  }
  const problem = overlayProblem(result.overlay)
  if (problem === null) return result
  const field = problem.field === '' ? 'overlay' : `overlay.${problem.field}`
  return refuseField('VCLUSTER_INVALID', field, problem.why)
}

const said = ({ name, revision }: VCluster) => ({ vcluster: name, revision })

const overlayLine = (before: Overlay, after: Overlay): string =>
  boundedText(`overlay: ${overlayChanges(before, after).join(', ') || 'in another order'}`)

const written = (
  from: Row<VCluster> | null,
  vcluster: VCluster,
  entries: Decided['change']['entries'],
  reads: readonly Read[] = [],
): VClusterDecided => ({
  ...decided({
    reads: [readOf('vcluster', vcluster.name, from), ...reads],
    writes: [{ put: 'vcluster', value: vcluster }],
    entries,
  }),
  vcluster,
})
