// Hardware profiles, the tags that put machines under them, and what is reported of a machine.

import {
  readOf,
  type Read,
  type Row,
  boundedText,
  decided,
  entry,
  type Attribution,
  type Decided,
  nodeDecided,
  type NodeDecided,
  type NodeFacts,
} from '#domain/core/change.ts'
import type { HardwareProfile, HardwareState, ResourceSlot } from '#domain/core/hardware-profile.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'

export type HardwareProfileDecided = Decided & { readonly profile: HardwareProfile }

export type CreateHardwareProfileFacts = {
  readonly existing: Row<HardwareProfile> | null
  readonly asked: Pick<HardwareProfile, 'tag' | 'description' | 'firmware' | 'tags' | 'slots' | 'sku'>
  /** Machines that carry the tag beside that of another hardware profile. */
  readonly conflicting: readonly string[]
  readonly by: Attribution
  readonly nowMs: number
}

export const decideCreateHardwareProfile = (facts: CreateHardwareProfileFacts): HardwareProfileDecided | Refusal => {
  const { existing, asked, conflicting, by, nowMs } = facts
  if (existing !== null && existing.value.removedAtMs === null) return refuse('HARDWARE_PROFILE_EXISTS', asked.tag)
  if (conflicting.length > 0) {
    const machines = conflicting.slice(0, 5).join(', ')
    return refuse('PROFILE_TAG_CONFLICT', `${machines} would have the tags of two hardware profiles`)
  }
  const profile: HardwareProfile = {
    ...asked,
    description: boundedText(asked.description),
    tags: sortedOnce(asked.tags),
    createdAtMs: nowMs,
    createdBy: by.actor,
    removedAtMs: null,
  }
  const { tag, firmware, slots, sku } = profile
  const body = { tag, firmware, slots, sku, tags: profile.tags }
  return {
    ...decided({
      reads: [readOf('hardware-profile', tag, existing)],
      writes: [{ put: 'hardware-profile', value: profile }],
      entries: [entry(by, nowMs, 'hardware_profile.created', {}, body)],
      soleTags: [tag],
    }),
    profile,
  }
}

/** Machines keep the tag, which from then on is one like any other. */
export const decideRemoveHardwareProfile = (
  profile: Row<HardwareProfile>,
  by: Attribution,
  nowMs: number,
): HardwareProfileDecided | Refusal => {
  const { tag, sku } = profile.value
  if (profile.value.removedAtMs !== null) return refuse('HARDWARE_PROFILE_NOT_FOUND', tag)
  const removed: HardwareProfile = { ...profile.value, removedAtMs: nowMs }
  return {
    ...decided({
      reads: [readOf('hardware-profile', tag, profile)],
      writes: [{ put: 'hardware-profile', value: removed }],
      entries: [entry(by, nowMs, 'hardware_profile.removed', {}, { tag, sku })],
    }),
    profile: removed,
  }
}

export type TagFacts = NodeFacts & {
  readonly add: readonly string[]
  readonly remove: readonly string[]
  /** Of every tag it is about to carry the hardware profile of that name, or that there is none. */
  readonly profiles: readonly { readonly tag: string; readonly row: Row<HardwareProfile> | null }[]
}

const mostTags = 64

export const tagsAfter = (tags: readonly string[], { add, remove }: Pick<TagFacts, 'add' | 'remove'>): string[] =>
  sortedOnce([...tags.filter((tag) => !remove.includes(tag)), ...add])

export const decideTag = (facts: TagFacts): NodeDecided | Refusal => {
  const { node, by, nowMs } = facts
  if (node.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  const tags = tagsAfter(node.value.machine.tags, facts)
  if (tags.length > mostTags) return refuseField('REQUEST_INVALID', 'add', `a machine carries ${mostTags} tags at most`)
  const known = facts.profiles.flatMap(({ row }) => (row === null ? [] : [row.value]))
  const under = profilesOf(tags, known)
  if (under.length > 1) {
    return refuse('PROFILE_TAG_CONFLICT', `${node.value.id} would have ${under.map(({ tag }) => tag).join(' and ')}`)
  }
  const about = { node: node.value.id, epoch: node.value.epoch }
  return nodeDecided(
    node,
    { ...node.value, machine: { ...node.value.machine, tags } },
    [entry(by, nowMs, 'node.tagged', about, { tags, was: node.value.machine.tags })],
    // A hardware profile made meanwhile for one of them is a race, which this change or that one loses.
    { reads: facts.profiles.map(({ tag, row }): Read => readOf('hardware-profile', tag, row)) },
  )
}

export type MachineReport = {
  readonly firmware: string | null
  readonly readiness: {
    readonly ready: boolean
    readonly evidence: Readonly<Record<string, string | number | null>>
  } | null
  /** Replaces those of the same name; the others stay. */
  readonly slots: readonly Pick<ResourceSlot, 'name' | 'state' | 'detail'>[]
  readonly removeSlots: readonly string[]
}

const mostSlots = 64

/** By an adapter that looks after the machine (MAAS, a burn-in), or by a person. */
export const decideMachineReport = (facts: NodeFacts & { readonly report: MachineReport }): NodeDecided | Refusal => {
  const { node, report, by, nowMs } = facts
  if (node.value.membership.kind === 'revoked') return refuse('NODE_REVOKED')
  const machine = machineAfter(node.value.machine, report, by, nowMs)
  if (machine.slots.length > mostSlots)
    return refuseField('REQUEST_INVALID', 'slots', `a machine has ${mostSlots} slots at most`)
  const about = { node: node.value.id, epoch: node.value.epoch }
  const body = {
    firmware: machine.firmware,
    ready: machine.readiness?.ready ?? null,
    slots: machine.slots.map(({ name, state }) => `${name}: ${state}`),
  }
  return nodeDecided(node, { ...node.value, machine }, [entry(by, nowMs, 'node.machine_reported', about, body)])
}

const machineAfter = (
  before: HardwareState,
  { firmware, readiness, slots, removeSlots }: MachineReport,
  by: Attribution,
  nowMs: number,
): HardwareState => {
  const named = new Map(before.slots.map((slot) => [slot.name, slot]))
  for (const name of removeSlots) named.delete(name)
  for (const { name, state, detail } of slots) {
    const known = named.get(name)
    const sinceMs = known?.state === state ? known.sinceMs : nowMs
    named.set(name, { name, state, detail: detail === null ? null : boundedText(detail), sinceMs })
  }
  return {
    tags: before.tags,
    firmware: firmware ?? before.firmware,
    readiness: readiness === null ? before.readiness : { ...readiness, by: by.actor, atMs: nowMs },
    slots: [...named.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1)),
  }
}

const sortedOnce = (tags: readonly string[]): string[] => [...new Set(tags)].toSorted()

// The SKU of a machine, derived when it is asked for. It is not stored, so it cannot be out of date.

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
