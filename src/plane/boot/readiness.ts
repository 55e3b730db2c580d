// Whether the plane can do its work, in sentences.

import { doubtInWords } from '#domain/continuity/continuity.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import { haltInWords } from '#domain/identity/issuance.ts'
import { bareName } from '#domain/programs/name-claim.ts'
import type { ServedClaim } from '#domain/programs/served-names.ts'
import type { AgingWarning } from '#plane/authority/authority-view.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { Standing } from '#plane/store/contract/replicas.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Clock } from '#platform/clock.ts'

export type ReadinessFacts = {
  readonly store: Pick<Store, 'trouble' | 'replicas'>
  readonly authority: Pick<Authority, 'serverIdentity' | 'longestLeafMs'>
  readonly clock: Clock
  /** What else keeps the plane from its work, such as starting or stopping. */
  readonly alsoUnready: () => readonly string[]
}

export const notReady = ({ store, authority, clock, alsoUnready }: ReadinessFacts): readonly string[] => {
  const trouble = store.trouble()
  return [
    ...alsoUnready(),
    ...standingReasons(store.replicas.standing()),
    ...(trouble === null ? [] : [`the store cannot be written to: ${trouble}`]),
    ...(clock.nowMs() < authority.serverIdentity().notAfterMs ? [] : ['the server certificate has expired']),
    ...(authority.longestLeafMs() > 0 ? [] : ['no issuer on record can sign']),
  ]
}

/** The first word is for programs, the rest says since when and why. */
const standingReasons = (standing: Standing): readonly string[] =>
  standing.kind === 'serving' ? [] : [`${standing.kind}: ${standing.why}`]

/** What the plane cannot do though it is ready: taking it out of service for that would take the rest away too. */
export const readyBut = (
  settings: DomainSettings,
  lost: readonly AgingWarning[],
  store: Pick<Store, 'warnings'>,
): readonly string[] => [
  ...[doubtInWords(settings), haltInWords(settings)].filter((words) => words !== null),
  ...lost.map(({ text }) => text),
  ...store.warnings(),
]

/** Names that the plane served before, and that are still needed. */
export const keptWarning = (kept: readonly ServedClaim[]): readonly string[] => {
  const hosts = kept.map(({ name }) => bareName(name)).join(', ')
  return kept.length === 0
    ? []
    : [
        `names of before stay in the certificates until every node has the new address (muster domain names list): ${hosts}`,
      ]
}
