import type { Profile } from '#domain/core/profile.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import type { Tree } from '#domain/core/settings-check.ts'
import { declaredOf, profileChangeOf } from '#domain/plans/plan-effects.ts'
import { decideDeleteProfile } from '#domain/settings/profile-deletion.ts'
import {
  decideChangeProfile,
  decideCreateProfile,
  profileDocument,
  settingsOfProfile,
} from '#domain/settings/profile-rules.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import { usersOfProfile } from '#plane/settings/delete-profile.ts'
import { nodesOfProfile } from './compute-plan.ts'
import { changesIn, documentKind, type DocumentStep, type Outlook, type Reading } from './document-kind.ts'

type Item = Tree & { readonly name: string }
type Wanted = { readonly name: string; readonly set: Tree }

const subjectOf = (name: string): string => `profile ${name}`

export const profileKind = documentKind<Item, Wanted, Profile>({
  section: 'profiles',
  nameOf: ({ name }) => name,
  read: ({ core }) => core.store.profiles(),
  render: (profile) => ({ name: profile.name, ...profileDocument(profile) }),
  parse: ({ name, ...settings }) => ({ name, set: settingsOfProfile(settings) }),
  async decide(reading, wanted, outlook) {
    const row = await reading.core.store.get('profile', wanted.name)
    if (row === null || row.value.deletedAtMs !== null) return create(reading, wanted, outlook)
    const { value: before, version } = row
    const migration = await reading.core.store.get('issuer-migration', wanted.name)
    const verdict = decideChangeProfile({ profile: row, migration, ...(await circumstances(reading, wanted, outlook)) })
    if (isRefusal(verdict)) return verdict
    if (changesIn(verdict.change).length === 0) return null
    const nodes = await nodesOfProfile(reading.core.store, wanted.name)
    const facts = { before, after: verdict.profile, keys: Object.keys(wanted.set), version, nodes }
    const effects = profileChangeOf({ ...facts, nowMs: outlook.nowMs })
    return { subject: subjectOf(wanted.name), effects, change: verdict.change }
  },
  async remove({ core }, row, { domain, profiles, unusedTokens, by, nowMs }) {
    const { name } = row.value
    const users = await usersOfProfile(core.store, name, await unusedTokens())
    const migration = await core.store.get('issuer-migration', name)
    const verdict = decideDeleteProfile({ profile: row, migration, domain, ...users, by, nowMs })
    if (isRefusal(verdict)) return verdict
    profiles.delete(name)
    const effects = [declaredOf(subjectOf(name), { effect: 'deleted', version: row.version })]
    return { subject: subjectOf(name), effects, change: verdict.change }
  },
})

/** What is left out is as in the default of the domain, as `profile create` has it. */
const create = async (reading: Reading, wanted: Wanted, outlook: Outlook): Promise<DocumentStep | Refusal> => {
  const { store } = reading.core
  const existing = await store.get('profile', wanted.name)
  const from = await liveProfile(store, (await domainSettingsRow(store)).value.defaultProfile)
  if (isRefusal(from)) return from
  const verdict = decideCreateProfile({
    name: wanted.name,
    from,
    existing,
    ...(await circumstances(reading, wanted, outlook)),
  })
  if (isRefusal(verdict)) return verdict
  outlook.profiles.set(wanted.name, existing?.version ?? 0)
  const changes = changesIn(verdict.change)
  const others = changes.length === 0 ? '' : `, with ${changes.join('; ')}`
  const effect = `created as a copy of ${from.value.name}${others}`
  const subject = subjectOf(wanted.name)
  return {
    subject,
    effects: [declaredOf(subject, { effect, version: existing?.version ?? null, copied: from })],
    change: verdict.change,
  }
}

const circumstances = async ({ core, authority }: Reading, { set }: Wanted, { by, nowMs }: Outlook) => ({
  ...{ set, by, nowMs },
  longestLeafMs: authority.longestLeafMs(),
  issuers: await readIssuers(core.store),
})
