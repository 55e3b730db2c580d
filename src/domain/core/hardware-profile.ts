// The SKU of a machine is derived when it is asked for: from its tags, the firmware it runs, the evidence that it is
// ready, and its approved resource slots. No tag names it.

export type HardwareProfile = {
  /** The tag that puts a machine under it. A machine carries one such tag at most. */
  readonly tag: string
  readonly description: string
  /** The firmware profile the machine has to run, e.g. `slice-vm`. */
  readonly firmware: string
  /** Further tags it has to carry. */
  readonly tags: readonly string[]
  /** How many approved slots it has to have. */
  readonly slots: number
  readonly sku: string
  readonly createdAtMs: number
  readonly createdBy: string
  readonly removedAtMs: number | null
}

export const resourceStates = ['pending', 'approved', 'in_use', 'cleaning', 'cleanup_blocked'] as const

/** A part of a machine that work is placed on. One that could not be cleaned blocks the whole machine. */
export type ResourceSlot = {
  readonly name: string
  readonly state: (typeof resourceStates)[number]
  readonly detail: string | null
  readonly sinceMs: number
}

export type Readiness = {
  readonly ready: boolean
  readonly evidence: Readonly<Record<string, string | number | null>>
  readonly by: string
  readonly atMs: number
}

/** What a node is known to be besides its identity. */
export type HardwareState = {
  /** Sorted, each once. */
  readonly tags: readonly string[]
  readonly firmware: string | null
  readonly readiness: Readiness | null
  readonly slots: readonly ResourceSlot[]
}

export const nothingTagged: HardwareState = { tags: [], firmware: null, readiness: null, slots: [] }
