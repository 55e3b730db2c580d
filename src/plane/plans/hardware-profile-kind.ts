import type { Attribution, Change, Row } from '#domain/core/change.ts'
import type { HardwareProfile } from '#domain/core/hardware-profile.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import {
  decideCreateHardwareProfile,
  decideRemoveHardwareProfile,
  type CreateHardwareProfileFacts,
} from '#domain/fleet/hardware-rules.ts'
import { declaredOf } from '#domain/plans/plan-effects.ts'
import { rowPages } from '#plane/core/pages.ts'
import { nodesUnderAnother } from '#plane/fleet/change-hardware.ts'
import type { CreateHardwareProfileRequest } from '#wire/fleet/hardware-api.ts'
import { documentKind } from './document-kind.ts'

type Asked = CreateHardwareProfileFacts['asked']

const subjectOf = (tag: string): string => `hardware-profile ${tag}`

const terms = ['description', 'firmware', 'tags', 'slots', 'sku'] as const

export const hardwareProfileKind = documentKind<
  CreateHardwareProfileRequest,
  CreateHardwareProfileRequest,
  HardwareProfile
>({
  section: 'hardwareProfiles',
  nameOf: ({ tag }) => tag,
  async read({ core }) {
    const pages = await Array.fromAsync(rowPages(core.store, 'hardware-profile', ({ tag }) => tag))
    return pages.flat().filter(({ value }) => value.removedAtMs === null)
  },
  render: ({ tag, description, firmware, tags, slots, sku }) => ({
    tag,
    description,
    firmware,
    tags: [...tags],
    slots,
    sku,
  }),
  parse: (item) => item,
  async decide({ core }, wanted, outlook) {
    const { by, nowMs, hardware } = outlook
    const row = await core.store.get('hardware-profile', wanted.tag)
    const now = row?.value.removedAtMs === null ? row : null
    const asked: Asked = { description: now?.value.description ?? '', tags: now?.value.tags ?? [], ...wanted }
    const changes = now === null ? [] : changesBetween(now.value, { ...asked, tags: asked.tags.toSorted() })
    if (now !== null && changes.length === 0) return null
    const conflicting = nodesUnderAnother(await outlook.nodesWithTags(), wanted.tag, [...hardware.values()])
    const made = decideCreateHardwareProfile({ existing: gone(row), asked, conflicting, by, nowMs })
    if (isRefusal(made)) return made
    hardware.set(wanted.tag, made.profile)
    const before = now === null ? null : removal(now, by, nowMs)
    if (isRefusal(before)) return before
    const subject = subjectOf(wanted.tag)
    const effect = now === null ? `created: ${made.profile.sku}` : `replaced: ${changes.join('; ')}`
    return {
      subject,
      effects: [declaredOf(subject, { effect, version: row?.version ?? null })],
      // One write: as its own routes say it, the one that there was is removed and another made.
      change:
        before === null
          ? made.change
          : { ...made.change, entries: [...before.entries, ...made.change.entries] as Change['entries'] },
    }
  },
  async remove(_reading, row, { by, nowMs, hardware }) {
    const { tag } = row.value
    const change = removal(row, by, nowMs)
    if (isRefusal(change)) return change
    hardware.delete(tag)
    const subject = subjectOf(tag)
    const effect = 'deleted; its tag is one like any other'
    return { subject, effects: [declaredOf(subject, { effect, version: row.version })], change }
  },
})

const removal = (row: Row<HardwareProfile>, by: Attribution, nowMs: number): Change | Refusal => {
  const verdict = decideRemoveHardwareProfile(row, by, nowMs)
  return isRefusal(verdict) ? verdict : verdict.change
}

/** The row as it is between the removal and the creation. */
const gone = (row: Row<HardwareProfile> | null): Row<HardwareProfile> | null =>
  row === null ? null : { ...row, value: { ...row.value, removedAtMs: row.value.removedAtMs ?? 0 } }

const changesBetween = (before: Asked, after: Asked): readonly string[] =>
  terms
    .map((term) => [term, JSON.stringify(before[term]), JSON.stringify(after[term])] as const)
    .filter(([, was, is]) => was !== is)
    .map(([term, was, is]) => `${term}: ${was} -> ${is}`)
