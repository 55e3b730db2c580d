// What the plane does without being asked: tasks of every replica, and what only the one that leads does.

import type { CutOffOrder } from '#domain/core/cut-off.ts'
import type { ProgramsAuthority } from '#plane/authority/programs-authority.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { Alerting } from '#plane/alerts/alerting.ts'
import type { UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { watchKeys, type WatchedKeys } from '#plane/alerts/watch-keys.ts'
import type { KeyBook } from '#plane/authn/operator-key-book.ts'
import { startLeading, type Led } from '#plane/cluster/leading.ts'
import { withStore, type Core } from '#plane/core/core.ts'
import { startUpkeep, type UpkeepTask } from '#plane/core/upkeep.ts'
import type { PendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import { callPeer } from '#plane/federation/call-peer.ts'
import { publishClaims } from '#plane/federation/publish-claims.ts'
import { leadSharedKeys } from '#plane/identity/shared-keys.ts'
import type { JournalWatch } from '#plane/journal/journal-watch.ts'

export type BackgroundParts = {
  /** Those of the listeners. */
  readonly tasks: readonly UpkeepTask[]
  readonly performCutOff: (order: CutOffOrder) => Promise<object>
  readonly maintainAuthority: () => Promise<void>
  readonly recovery: Pick<RecoveryAuthority, 'maintain' | 'signStatement'>
  readonly programs: Pick<ProgramsAuthority, 'maintain'>
  readonly cutOffs: Pick<PendingCutOffs, 'repeat'>
  readonly keyBook: Pick<KeyBook, 'lookAtAll'>
  readonly alerts: UnresolvedAlerts
  readonly custody: WatchedKeys['custody']
  readonly alerting: Pick<Alerting, 'lead'>
  readonly journalWatch: Pick<JournalWatch, 'lead'>
  readonly issuers: { lead(leading: Core): Led }
  readonly domainName: string
}

/** Finds a row that no caller presents; there are few of them. */
const operatorKeysEveryMs = 30_000

/** Cheap when nothing is due. */
const authorityEveryMs = 5000

export const startBackground = (core: Core, parts: BackgroundParts) => {
  const { recovery, programs, cutOffs, keyBook, alerts } = parts
  const upkeep: readonly UpkeepTask[] = [
    ...parts.tasks,
    watchKeys(core, { custody: parts.custody, alerts }),
    { name: 'operator keys', where: 'leader', everyMs: operatorKeysEveryMs, run: () => keyBook.lookAtAll() },
    { name: 'pending cut-offs', where: 'each', everyMs: 1000, run: () => cutOffs.repeat(parts.performCutOff) },
    { name: 'authority', where: 'each', everyMs: authorityEveryMs, run: parts.maintainAuthority },
    // Apart from the other: trouble of one trust must not let the other grow old.
    { name: 'recovery authority', where: 'each', everyMs: authorityEveryMs, run: () => recovery.maintain() },
    { name: 'programs authority', where: 'each', everyMs: authorityEveryMs, run: () => programs.maintain() },
  ]
  const tasksOf = (where: UpkeepTask['where']) => upkeep.filter((task) => task.where === where)
  const endUpkeep = startUpkeep(core, tasksOf('each'))
  const leading = startLeading(core, (asLeader) => {
    const leader = withStore(core, asLeader)
    const endSweeps = startUpkeep(leader, tasksOf('leader'))
    const alertsLed = parts.alerting.lead(leader)
    const keysLed = leadSharedKeys(leader, alerts)
    const journalLed = parts.journalWatch.lead()
    const outboxLed = parts.issuers.lead(leader)
    const claimsLed = publishClaims(leader, { domainName: parts.domainName, recovery, call: callPeer })
    return {
      async stop() {
        endSweeps()
        await journalLed.stop()
        await alertsLed.stop()
        await keysLed.stop()
        await claimsLed.stop()
        await outboxLed.stop()
      },
    }
  })
  return { endUpkeep, stop: () => leading.stop() }
}
