// Outside issuers as one part of a plane.

import type { UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import type { Core } from '#plane/core/core.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import type { Led } from '#plane/cluster/leading.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { leadIssuerOutbox } from './issuer-outbox.ts'
import { openIssuerSecrets, type IssuerSecrets } from './issuer-secrets.ts'
import { openKnownIssuers, type KnownIssuers } from './known-issuers.ts'
import type { OutsideBook } from './outside-book.ts'
import { openOutsideIssuers, type IssuerKinds, type OutsideIssuers } from './open-outside-issuers.ts'
import { renewCredentials } from './renew-credentials.ts'
import { watchIssuers } from './watch-issuers.ts'

export type Issuers = {
  readonly known: KnownIssuers
  readonly secrets: IssuerSecrets
  readonly outside: OutsideIssuers
  readonly kinds: IssuerKinds
  upkeep(alerts: Pick<UnresolvedAlerts, 'has' | 'all'>): readonly UpkeepTask[]
  /** Sends what is to be revoked, while this replica leads. */
  lead(leading: Core, book: Pick<OutsideBook, 'find' | 'isEmpty'>): Led
}

export const openIssuers = async (
  core: Core,
  { custody, kinds }: { readonly custody: KeyCustody; readonly kinds: IssuerKinds },
): Promise<Issuers> => {
  const known = await openKnownIssuers(core)
  const secrets = openIssuerSecrets(custody, core.random)
  await core.store.exclusively(async () => secrets.sort((await readIssuers(core.store)).map(({ value }) => value)))
  const outside = openOutsideIssuers(core, { known, secrets, kinds })
  return {
    ...{ known, secrets, outside, kinds },
    upkeep: (alerts) => [watchIssuers(core, { known, outside, alerts }), renewCredentials(core, { secrets, kinds })],
    lead: (leading, book) => leadIssuerOutbox(leading, { known, book, outside }),
  }
}
