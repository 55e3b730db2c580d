// What goes out with every certificate besides: the counter it was counted with and, in compatibility mode, the bearer
// token. Both are made from what is on record, so a repeated request is answered with the same ones.

import { slotsOf } from '#domain/core/slots.ts'
import type { Node } from '#domain/core/node.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { signCounter, type CounterDeps } from './signed-counter.ts'

export type LineageDeps = CounterDeps & { readonly recovery: RecoveryAuthority }

/** The certificate that is handed out, now or once more. */
export type HandedOut = { readonly serial: string; readonly spki: string }

export type Lineage = { readonly counter: string; readonly recoveryToken: string | null }

export const lineageOf = (deps: LineageDeps, node: Node, handedOut: HandedOut): Lineage => {
  const count = countOf(node, handedOut.serial)
  const token = deps.recovery.bearerFor({ node: node.id, counter: count, spki: handedOut.spki })
  const registered = node.recovery === null ? null : node.recovery.credential
  return {
    counter: signCounter(deps, node, count),
    // One that has been rotated away since is of no use to anybody.
    recoveryToken: registered?.kind === 'bearer' && registered.hash === sha256Hex(token) ? token : null,
  }
}

/** The hash of the token that goes with the next certificate of this node, if it recovers by tokens. */
export const nextBearerHash = ({ recovery }: LineageDeps, node: Pick<Node, 'id' | 'counter'>, spki: string): string =>
  sha256Hex(recovery.bearerFor({ node: node.id, counter: node.counter + 1, spki }))

/** The newest certificate has the newest count; any other is from before it. */
const countOf = (node: Node, serial: string): number => {
  const slots = slotsOf(node)
  const newest = slots === null ? null : (slots.pending ?? slots.current)
  return newest === null || newest.serial === serial ? node.counter : node.counter - 1
}
