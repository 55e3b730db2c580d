import { isRefusal } from '#domain/core/refusal.ts'
import type { Tree } from '#domain/core/settings-check.ts'
import { overlayChanges, noOverlay } from '#domain/fleet/overlay.ts'
import {
  decideChangeVCluster,
  decideCreateVCluster,
  decideDeleteVCluster,
  settingsOfVCluster,
  vclusterDocument,
  type VCluster,
} from '#domain/fleet/vcluster.ts'
import { declaredOf } from '#domain/plans/plan-effects.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import { rowPages } from '#plane/core/pages.ts'
import { hasNodes, inUse } from '#plane/fleet/change-vclusters.ts'
import { overlayOf, overlayView, type OverlayRequest } from '#wire/fleet/overlay-document.ts'
import { changesIn, documentKind } from './document-kind.ts'

type Item = Tree & OverlayRequest & { readonly name: string }
/** `lists`: of the overlay, those that are declared. */
type Wanted = { readonly name: string; readonly set: Tree; readonly lists: OverlayRequest }

const subjectOf = (name: string): string => `vcluster ${name}`

export const vclusterKind = documentKind<Item, Wanted, VCluster>({
  section: 'vclusters',
  nameOf: ({ name }) => name,
  async read({ core }) {
    const pages = await Array.fromAsync(rowPages(core.store, 'vcluster', ({ name }) => name))
    return pages.flat().filter(({ value }) => value.deletedAtMs === null)
  },
  render: (vcluster) => ({
    ...{ name: vcluster.name, ...vclusterDocument(vcluster) },
    ...(overlayView(vcluster.overlay) as OverlayRequest),
  }),
  parse({ name, files, services, checks, ...settings }) {
    const lists = {
      ...(files !== undefined && { files }),
      ...(services !== undefined && { services }),
      ...(checks !== undefined && { checks }),
    }
    return { name, set: settingsOfVCluster(settings), lists }
  },
  async decide({ core }, { name, set, lists }, { by, nowMs }) {
    const row = await core.store.get('vcluster', name)
    const subject = subjectOf(name)
    const isDeclared = Object.keys(lists).length > 0
    const issuers = await readIssuers(core.store)
    if (row === null || row.value.deletedAtMs !== null) {
      const overlay = isDeclared ? overlayOf(lists) : null
      const verdict = decideCreateVCluster({ name, existing: row, set, overlay, issuers, by, nowMs })
      if (isRefusal(verdict)) return verdict
      const runs = overlayChanges(noOverlay, verdict.vcluster.overlay)
      const effect = ['created', ...runs].join('; ')
      return {
        subject,
        effects: [declaredOf(subject, { effect, version: row?.version ?? null })],
        change: verdict.change,
      }
    }
    const overlay = isDeclared ? overlayOf({ ...(overlayView(row.value.overlay) as OverlayRequest), ...lists }) : null
    const verdict = decideChangeVCluster({ vcluster: row, set, overlay, issuers, by, nowMs })
    if (verdict.kind === 'unchanged') return null
    if (isRefusal(verdict)) return verdict
    const effect = `${changesIn(verdict.change).join('; ')}; its nodes get it at once`
    return { subject, effects: [declaredOf(subject, { effect, version: row.version })], change: verdict.change }
  },
  /** Only an empty one: whether its nodes are to be without one is a question of its own (`vcluster delete --force`). */
  async remove({ core }, row, { by, nowMs }) {
    const { name } = row.value
    if (await hasNodes(core.store, name)) return inUse(name)
    const verdict = decideDeleteVCluster({ vcluster: row, guarded: true, by, nowMs })
    if (isRefusal(verdict)) return verdict
    const subject = subjectOf(name)
    const effects = [declaredOf(subject, { effect: 'deleted', version: row.version })]
    return { subject, effects, change: verdict.change }
  },
})
