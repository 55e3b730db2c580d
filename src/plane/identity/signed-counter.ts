// The counter as it travels: signed, so that a caller can only present one that it was given (ruling 6).

import type { Node, NodeId } from '#domain/core/node.ts'
import type { PresentedCounter } from '#domain/core/recovery-credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { formatStatement, parseStatement } from '#wire/core/statement.ts'

export type CounterDeps = {
  readonly recovery: Pick<RecoveryAuthority, 'signStatement' | 'isOurStatement'>
  readonly domainName: string
}

export const signCounter = (
  { recovery, domainName }: CounterDeps,
  { id, epoch }: Pick<Node, 'id' | 'epoch'>,
  counter: number,
): string =>
  formatStatement('counter', { domain: domainName, node: id, epoch, counter }, (bytes) => recovery.signStatement(bytes))

/**
 * One that another key signed is like none: keys can be lost. Serials guard a renewal, and whoever has a copy of an identity
 * could as well leave its counter out. Where nothing else guards, as in a recovery, it is `readCounter` that is asked.
 */
export const readRenewalCounter = (
  deps: CounterDeps,
  text: string | null,
  node: NodeId,
): PresentedCounter | null | Refusal => {
  const parsed = text === null ? null : parseStatement('counter', text)
  const foreign = parsed !== null && !deps.recovery.isOurStatement(parsed.signed, parsed.signature)
  return foreign ? null : readCounter(deps, text, node)
}

/** Null: none was presented. */
export const readCounter = (
  { recovery, domainName }: CounterDeps,
  text: string | null,
  node: NodeId,
): PresentedCounter | null | Refusal => {
  if (text === null) return null
  const parsed = parseStatement('counter', text)
  const ours = parsed !== null && recovery.isOurStatement(parsed.signed, parsed.signature)
  if (!ours || parsed.value.domain !== domainName || parsed.value.node !== node)
    return refuse('REQUEST_INVALID', 'the counter is not one this node was given')
  return parsed.value
}
