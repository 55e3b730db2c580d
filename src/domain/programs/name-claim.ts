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
  /** `dropped`: it is not served any more, and stays forbidden for programs. */
  | { readonly kind: 'plane'; readonly dropped: { readonly atMs: number; readonly by: string } | null }
  /** It was taken from a node, and may be registered again. */
  | { readonly kind: 'nobody' }
