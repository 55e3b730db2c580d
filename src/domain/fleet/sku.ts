// What a machine can be sold as, read off at the moment somebody asks. Nothing of it is stored, so nothing of it grows old.

import type { HardwareProfile, HardwareState } from '#domain/core/hardware-profile.ts'

export type Sku =
  | { readonly sku: string; readonly profile: string; readonly why: readonly [] }
  /** `why`: everything that is missing; `profile`: the hardware profile it would have. */
  | { readonly sku: null; readonly profile: string | null; readonly why: readonly string[] }

/** Slots that count: work may be on them or come to them. */
const usable: ReadonlySet<string> = new Set(['approved', 'in_use'])

export const skuOf = (machine: HardwareState, profiles: readonly HardwareProfile[]): Sku => {
  const [profile, ...others] = profilesOf(machine.tags, profiles)
  if (profile === undefined) return { sku: null, profile: null, why: ['no tag of a hardware profile'] }
  if (others.length > 0) {
    const tags = [profile, ...others].map(({ tag }) => tag)
    return { sku: null, profile: null, why: [`tags of several hardware profiles: ${tags.join(', ')}`] }
  }
  const why = [...missingOf(machine, profile)]
  return why.length === 0
    ? { sku: profile.sku, profile: profile.tag, why: [] }
    : { sku: null, profile: profile.tag, why }
}

/** The hardware profiles these tags put a machine under. */
export const profilesOf = (tags: readonly string[], profiles: readonly HardwareProfile[]): readonly HardwareProfile[] =>
  profiles.filter(({ tag, removedAtMs }) => removedAtMs === null && tags.includes(tag))

const missingOf = (
  { tags, firmware, readiness, slots }: HardwareState,
  profile: HardwareProfile,
): readonly string[] => {
  const wanted = profile.tags.filter((tag) => !tags.includes(tag))
  const counted = slots.filter(({ state }) => usable.has(state)).length
  return [
    ...wanted.map((tag) => `tag ${tag} is missing`),
    ...(firmware === profile.firmware ? [] : [`firmware is ${firmware ?? 'not known'}, not ${profile.firmware}`]),
    ...(readiness === null
      ? ['no evidence that it is ready']
      : readiness.ready
        ? []
        : ['its evidence says it is not ready']),
    ...(counted >= profile.slots ? [] : [`${counted} of ${profile.slots} slots approved`]),
    ...slots.filter(({ state }) => state === 'cleanup_blocked').map(({ name }) => `slot ${name}: cleanup_blocked`),
  ]
}
