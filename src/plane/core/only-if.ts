import type { Node } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'

/** Looked at in the decision itself: whoever was promised something of the node is not given something else. */
export type OnlyIf = (node: Node) => Refusal | null
