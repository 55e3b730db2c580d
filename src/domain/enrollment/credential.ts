// The first half of an enrollment: is there a credential at all? Cheap, and decided before a request is parsed, so that
// strangers are charged before they cost anything (ruling 2).

import type { Row } from '#domain/core/change.ts'
import { isFromFuture } from '#domain/core/clock-tolerance.ts'
import type { HardwareIdentity, Node } from '#domain/core/node.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Token } from './token.ts'

export type Credential =
  /** `standing`: a used token still answers its own key, which only the request can show. */
  | { readonly method: 'token'; readonly token: Row<Token>; readonly standing: 'unused' | 'taken' }
  | { readonly method: 'hardware'; readonly node: Row<Node> }

/** `token` is null when no row has the hash of the secret. */
export const judgeToken = (token: Row<Token> | null, nowMs: number, toleranceMs: number): Credential | Refusal => {
  if (token === null) return refuse('TOKEN_INVALID')
  switch (token.value.state.kind) {
    case 'revoked':
      return refuse('TOKEN_INVALID', token.value.state.why ?? null)
    case 'used':
    case 'bound':
      return { method: 'token', token, standing: 'taken' }
    case 'unused':
      if (nowMs >= token.value.expiresAtMs) return refuse('TOKEN_EXPIRED')
      if (isFromFuture(token.value.createdAtMs, nowMs, toleranceMs))
        return refuse('TOKEN_INVALID', 'it was made by a clock that was ahead')
      return { method: 'token', token, standing: 'unused' }
  }
}

/** `claimants`: every node that holds any of the reported addresses. A tombstone speaks only where nobody living does. */
export const judgeHardware = (
  reported: HardwareIdentity,
  claimants: readonly Row<Node>[],
): Extract<Credential, { method: 'hardware' }> | Refusal => {
  const living = claimants.filter(({ value }) => value.membership.kind !== 'revoked')
  const [node, other] = living.length === 0 ? claimants : living
  if (node === undefined) return refuse('NODE_NOT_ENROLLED')
  if (other !== undefined) {
    return refuse('HARDWARE_IDENTITY_CONFLICT', 'the addresses of this machine are registered to more than one node')
  }
  return hardwareMatches(node.value.hardware, reported)
    ? { method: 'hardware', node }
    : refuse('NODE_NOT_ENROLLED', 'part of the hardware identity matches a node, and part of it does not')
}

/** A registered BMC serial has to be there exactly; of registered MACs at least one, since network cards get replaced. */
export const hardwareMatches = (registered: HardwareIdentity, reported: HardwareIdentity): boolean => {
  if (registered.bmcSerial === null && registered.macs.length === 0) return false
  if (registered.bmcSerial !== null && registered.bmcSerial !== reported.bmcSerial) return false
  return registered.macs.length === 0 || registered.macs.some((mac) => reported.macs.includes(mac))
}
