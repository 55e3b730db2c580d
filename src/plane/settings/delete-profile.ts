// Deletes a profile that nothing uses.

import type { Attribution } from '#domain/core/change.ts'
import type { Profile } from '#domain/core/profile.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { tokenStatus } from '#domain/core/token.ts'
import { decideDeleteProfile } from '#domain/settings/profile-deletion.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { everyNode, everyRow } from '#plane/core/pages.ts'

export const deleteProfile = async (
  core: FlowCore,
  name: string,
  by: Attribution,
): Promise<{ readonly kind: 'deleted'; readonly profile: Profile } | Refusal> => {
  const done = await commitDecision(core, async () => {
    const profile = await liveProfile(core.store, name)
    if (isRefusal(profile)) return profile
    const domain = await domainSettingsRow(core.store)
    return decideDeleteProfile({
      profile,
      domain,
      ...(await usersOfProfile(core, name)),
      by,
      nowMs: core.clock.nowMs(),
    })
  })
  return done.kind === 'refused' ? done : { kind: 'deleted', profile: done.profile }
}

/** Tokens of nodes count too: what they are for is gone with the profile. */
export const usersOfProfile = async (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  name: string,
): Promise<{ readonly nodes: number; readonly tokens: number }> => {
  let [nodes, tokens] = [0, 0]
  const nowMs = clock.nowMs()
  for await (const token of everyRow(store, 'token', ({ hash }) => hash))
    if (token.profile === name && tokenStatus(token, nowMs) === 'unused') tokens++
  // Behind the tokens: one that is used meanwhile has made a node.
  for await (const { membership } of everyNode(store, { profile: name })) if (membership.kind !== 'revoked') nodes++
  return { nodes, tokens }
}
