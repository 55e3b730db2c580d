import type { Node } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'

/** A precondition that the decision checks inside the transaction. */
export type OnlyIf = (node: Node) => Refusal | null
