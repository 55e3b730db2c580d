// The names of the plane, and the join string that carries one to machines that join by their hardware identity.

import { decided, entry, type Attribution } from '#domain/core/change.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { bareName, claimedName } from '#domain/programs/name-claim.ts'
import { countJoinString, hostOfUrl, type ServedClaim } from '#domain/programs/served-names.ts'
import { isoTime } from '#platform/clock.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { answer, attributionOf, serve, type Route } from '#plane/http/route.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { planeNamesApi, type PlaneNameView } from '#wire/settings/names-api.ts'
import type { PlaneName, PlaneNames } from './plane-names.ts'

export type NameRouteParts = {
  readonly authority: Pick<Issuer, 'rootFingerprint'>
  readonly planeNames: PlaneNames
  readonly urls: () => Pick<PlaneUrls, 'node' | 'marked'>
}

export const operatorNameRoutes = (core: FlowCore, parts: NameRouteParts): readonly Route[] =>
  serve(planeNamesApi, {
    list: async () => answer({ names: (await parts.planeNames.list()).map(nameView) }),
    drop: async (call) => {
      const done = await parts.planeNames.drop(call.params.name, attributionOf(call))
      return isRefusal(done) ? done : answer(nameView({ claim: done.claim, state: 'dropped', needs: null }))
    },
    joinString: async (call) => {
      const made = await makeJoinString(core, parts, attributionOf(call))
      return isRefusal(made) ? made : answer({ join: made.join }, 201)
    },
  })

/** Counted under its name: it works for as long as the plane has that name. */
const makeJoinString = async (
  core: FlowCore,
  { authority, urls }: NameRouteParts,
  by: Attribution,
): Promise<{ readonly kind: 'made'; readonly join: string } | Refusal> => {
  const { node: url, marked } = urls()
  const { value: domain } = await domainSettingsRow(core.store)
  const rootFingerprint = authority.rootFingerprint()
  const join = formatJoinString({ url, domain: domain.name, rootFingerprint, secret: null, marked })
  const done = await commitDecision(core, async () => {
    const host = hostOfUrl(url)
    const row = await core.store.get('name-claim', claimedName(host))
    const nowMs = core.clock.nowMs()
    const made = entry(by, nowMs, 'domain.join_string_made', {}, { name: host })
    return decided({ reads: [], writes: [], ...countJoinString(row), entries: [made] })
  })
  return isRefusal(done) ? done : { kind: 'made', join }
}

const nameView = ({ claim, state, needs }: PlaneName): PlaneNameView => ({
  name: bareName(claim.name),
  use: claim.holder.use,
  state,
  since: isoTime(claim.sinceMs),
  ...droppedView(claim),
  needed_by:
    needs === null
      ? null
      : {
          nodes: needs.nodes.filter(({ why }) => why === 'unacknowledged').length,
          images: needs.nodes.filter(({ why }) => why === 'image').length,
          tokens: needs.tokens.length,
          repair_bundles: needs.bundles.length,
          join_strings: needs.joinStrings,
        },
})

const droppedView = ({ holder: { dropped } }: ServedClaim): Pick<PlaneNameView, 'dropped_at' | 'dropped_by'> => ({
  dropped_at: dropped === null ? null : isoTime(dropped.atMs),
  dropped_by: dropped === null ? null : dropped.by,
})
