// Whether the plane can do its work, in sentences.

import type { Authority } from './issuer/authority.ts'
import type { Store } from './store/store.ts'
import type { Clock } from '#platform/clock.ts'

export type ReadinessFacts = {
  readonly store: Pick<Store, 'trouble'>
  readonly authority: Pick<Authority, 'serverIdentity' | 'longestLeafMs'>
  readonly clock: Clock
  /** What else keeps the plane from its work, such as starting or stopping. */
  readonly besides: () => readonly string[]
}

export const notReady = ({ store, authority, clock, besides }: ReadinessFacts): readonly string[] => {
  const trouble = store.trouble()
  return [
    ...besides(),
    ...(trouble === null ? [] : [`the store cannot be written to: ${trouble}`]),
    ...(clock.nowMs() < authority.serverIdentity().notAfterMs ? [] : ['the server certificate has expired']),
    ...(authority.longestLeafMs() > 0 ? [] : ['no issuer on record can sign']),
  ]
}
