// A part of all nodes, for readers that share them: `0/4` is the first of four. The same node is always in the same shard.

import { refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { NodeId } from '#domain/core/node.ts'

export type Shard = { readonly part: number; readonly of: number }

/** Undefined: all nodes, as null. */
export const parseShard = (text: string | undefined): Shard | null | Refusal => {
  if (text === undefined) return null
  const [part = NaN, of = NaN] = text.split('/').map(Number)
  return part < of ? { part, of } : refuseField('REQUEST_INVALID', 'shard', `there is no shard ${part} of ${of}`)
}

/** FNV-1a: cheap, and even enough for parts of a fleet. */
export const inShard = ({ part, of }: Shard, node: NodeId): boolean => {
  let hash = 0x811c9dc5
  for (let at = 0; at < node.length; at++) hash = Math.imul(hash ^ node.charCodeAt(at), 0x01000193) >>> 0
  return hash % of === part
}
