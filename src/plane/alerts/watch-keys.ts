// The alert about keys that are in a token or in Vault and cannot be used. Each replica reaches them by itself and says what it finds; one that is gone
// says nothing more, and the others end what it has said.

import type { Alert } from '#domain/alerts/alert.ts'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { Core } from '#plane/core/core.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { isReference } from '#plane/keys/key-reference.ts'
import type { KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { raiseAlert, reconcileAlert, type UnresolvedAlerts } from './reconcile-alerts.ts'

export type WatchedKeys = {
  readonly custody: Pick<KeyCustody, 'names' | 'find'> & {
    readonly elsewhere: Pick<KeysElsewhere, 'lookAgain' | 'troubles'>
  }
  readonly alerts: Pick<UnresolvedAlerts, 'has' | 'all'>
}

const kind = 'key_unavailable'
const lookEveryMs = 5000

export const watchKeys = (core: Core, { custody, alerts }: WatchedKeys): UpkeepTask => {
  const { elsewhere } = custody
  const { replicas } = core.store
  const opened = () => [...alerts.all()].filter((alert) => alert.kind === kind)
  const kept = (): readonly string[] =>
    custody
      .names()
      .flatMap((name) => custody.find(name) ?? [])
      .filter(isReference)
  const end = (alert: Alert) => reconcileAlert(core, alert, () => ({ wanted: null, reliedOn: [] }))
  return {
    name: 'keys elsewhere',
    where: 'each',
    everyMs: lookEveryMs,
    async run() {
      // A failure that is over by now wakes nobody.
      await elsewhere.lookAgain(kept)
      const troubles = new Map(elsewhere.troubles().map(({ place, text }) => [place, text]))
      if (troubles.size === 0 && opened().length === 0) return
      const leased = await replicas.leased()
      const self = leased.find(({ number }) => number === replicas.self)?.name
      if (self === undefined) return
      const subjectOf = (place: string): string => `${place} at ${self}`
      for (const [place, text] of troubles)
        if (!alerts.has(kind, subjectOf(place)))
          await raiseAlert(core, wantedAlert(kind, subjectOf(place), { place, replica: self, text }))
      const wanted = new Set([...troubles.keys()].map(subjectOf))
      const others = leased.filter(({ name }) => name !== self)
      const isSaidByAnother = ({ subject }: Alert): boolean =>
        others.some(({ name }) => subject.endsWith(` at ${name}`))
      for (const alert of opened()) if (!wanted.has(alert.subject) && !isSaidByAnother(alert)) await end(alert)
    },
  }
}
