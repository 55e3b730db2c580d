// One name or address belongs to one holder at a time: to a node whose programs may carry it, or to the plane, which never gives
// up a name that it has served. Compared in the commit that registers, signs or serves it.

import type { NodeId } from '#domain/core/node.ts'

export type NameClaim = {
  /** `dns:` and the name in lower case without a trailing dot, or `ip:` and the canonical address. */
  readonly name: string
  readonly holder: NameHolder
  readonly sinceMs: number
  readonly by: string
}

export type NameHolder =
  /** `derived`: made from a registered name by a template of an output. */
  | { readonly kind: 'node'; readonly node: NodeId; readonly derived: boolean }
  | PlaneHolder
  /** It was taken from a node, and may be registered again. */
  | { readonly kind: 'nobody' }

export type PlaneHolder = {
  readonly kind: 'plane'
  /** `address`: a listener or a URL of the plane has it, and no certificate. */
  readonly use: 'certificate' | 'address'
  /** How many join strings without a secret were handed out with it. Nothing shows when they are not needed any more. */
  readonly joinStrings: number
  /** It was dropped before and then claimed again, at `sinceMs`. */
  readonly retaken: boolean
  /** It is not served any more, and stays forbidden for programs. */
  readonly dropped: { readonly atMs: number; readonly by: string } | null
}
