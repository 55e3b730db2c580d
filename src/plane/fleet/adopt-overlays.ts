// What vClusters and the domain have hosts start gets its MAC (plane/seals) when this release is the only one that writes: rows of a release
// before have none. Called before the first task signer is made, and never after it, so that a row without one counts no more from then on.

import { decided, entry, readOf, type Attribution } from '#domain/core/change.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { everyRow } from '#plane/core/pages.ts'

const system: Attribution = { actor: 'system:seals', source: null, correlation: null }

/** May be repeated after a crash half-way. */
export const adoptOverlays = async (core: FlowCore): Promise<void> => {
  for await (const { name, overlay } of everyRow(core.store, 'vcluster', (value) => value.name))
    if (overlay.services.length + overlay.checks.length > 0) expectDone(await adoptVCluster(core, name))
  if ((await domainSettingsRow(core.store)).value.maintenance.timeSync !== null) expectDone(await adoptTimeSync(core))
}

/** Else its hosts would start nothing once there is a signer. A row that cannot be read starts nothing anyway. */
const expectDone = (done: { readonly kind: string } | Refusal): void => {
  if (isRefusal(done) && done.code === 'BUSY') throw new Error(`an overlay could not be given its MAC: ${done.detail}`)
}

/** Written as it is: the store gives it the MAC. */
const adoptVCluster = (core: FlowCore, name: string) =>
  commitDecision(core, async () => {
    const row = await core.store.get('vcluster', name)
    if (row === null) return refuse('VCLUSTER_NOT_FOUND', name)
    const said = { vcluster: name, revision: row.value.revision }
    return decided({
      reads: [readOf('vcluster', name, row)],
      writes: [{ put: 'vcluster', value: row.value }],
      entries: [entry(system, core.clock.nowMs(), 'overlay.adopted', {}, said)],
    })
  })

const adoptTimeSync = (core: FlowCore) =>
  commitDecision(core, async () => {
    const row = await domainSettingsRow(core.store)
    return decided({
      reads: [readOf('domain', 'domain', row)],
      writes: [{ put: 'domain', value: row.value }],
      entries: [entry(system, core.clock.nowMs(), 'overlay.adopted', {}, { vcluster: null })],
    })
  })
