// What people may do on a node, and what becomes of drift.

export const enforcementModes = ['observe', 'enforce'] as const

export type Policy = {
  /** `observe`: drift is reported. `enforce`: it is also put right. */
  readonly enforcementMode: (typeof enforcementModes)[number]
  /** Programs that roles of the vCluster may run; platform-admins need no list. */
  readonly execWhitelist: readonly string[]
  readonly shellWhitelist: readonly string[]
  readonly regulated: boolean
}
