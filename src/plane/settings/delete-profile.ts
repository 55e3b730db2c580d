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
      migration: await core.store.get('issuer-migration', name),
      domain,
      ...(await usersOfProfile(core.store, name, await unusedTokens(core))),
      by,
      nowMs: core.clock.nowMs(),
    })
  })
  return done.kind === 'refused' ? done : { kind: 'deleted', profile: done.profile }
}

/** How many there are of each profile. */
export type UnusedTokens = ReadonlyMap<string, number>

/** Tokens of nodes count too: what they are for is gone with the profile. */
export const unusedTokens = async ({ store, clock }: Pick<Core, 'store' | 'clock'>): Promise<UnusedTokens> => {
  const counts = new Map<string, number>()
  const nowMs = clock.nowMs()
  for await (const token of everyRow(store, 'token', ({ hash }) => hash))
    if (tokenStatus(token, nowMs) === 'unused') counts.set(token.profile, (counts.get(token.profile) ?? 0) + 1)
  return counts
}

/** `tokens` were read before: one that is used meanwhile has made a node, which counts here. */
export const usersOfProfile = async (
  store: Core['store'],
  name: string,
  tokens: UnusedTokens,
): Promise<{ readonly nodes: number; readonly tokens: number }> => {
  let nodes = 0
  for await (const { membership } of everyNode(store, { profile: name })) if (membership.kind !== 'revoked') nodes++
  return { nodes, tokens: tokens.get(name) ?? 0 }
}
