// The certificate that a step-ca is asked for renewals with, replaced long before its end: step-ca signs nothing that would outlive it.

import { decideNewCredential } from '#domain/issuers/change-issuer.ts'
import type { Attribution } from '#domain/core/change.ts'
import { commitOnce } from '#plane/core/commit-decision.ts'
import { withStore, type Core } from '#plane/core/core.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'
import type { IssuerSecrets } from './issuer-secrets.ts'
import type { IssuerKinds } from './open-outside-issuers.ts'

const by: Attribution = { actor: 'system:issuers', source: null, correlation: null }
const lookEveryMs = 3_600_000

export const renewCredentials = (
  core: Core,
  { secrets, kinds }: { readonly secrets: IssuerSecrets; readonly kinds: Pick<IssuerKinds, 'renew'> },
): UpkeepTask => ({
  name: 'credentials at issuers',
  where: 'leader',
  everyMs: lookEveryMs,
  async run(asLeader) {
    const profiles = (await asLeader.profiles()).map(({ value }) => value)
    const longestMs = Math.max(...profiles.map(({ certificate }) => certificate.lifetimeMs))
    for (const issuer of await readIssuers(asLeader)) {
      const { access, state, forged } = issuer.value
      const held = forged || state.kind === 'retired' ? null : await secrets.find(issuer.value)
      const renewed = held === null ? null : kinds.renew(access, held, longestMs)
      if (renewed === null) continue
      await asLeader.exclusively(async () => {
        const kept = await secrets.keep(renewed)
        const decision = decideNewCredential({ issuer, by, nowMs: core.clock.nowMs() }, kept)
        // Lost to an operator who has changed it: the next round looks again.
        const isWritten = (await commitOnce(withStore(core, asLeader), decision.change)) !== 'lost-race'
        const left = isWritten ? issuer.value.secrets : kept
        if (left !== null) await secrets.drop(left)
      })
    }
    // Also those that a plan or a crash has left behind.
    await asLeader.exclusively(async () => secrets.sort((await readIssuers(asLeader)).map(({ value }) => value)))
  },
})
