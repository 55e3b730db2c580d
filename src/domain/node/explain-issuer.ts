// Why the next certificate of a node is late, where its issuer is outside: it does not answer, or does not sign.

import { slotsOf } from '#domain/core/certificate.ts'
import type { Node } from '#domain/core/node.ts'
import { builtIn, type Profile } from '#domain/core/profile.ts'
import { isoTime } from '#platform/clock.ts'

export type IssuerOfNode = {
  /** Since when its issuer has not answered; null: it does. */
  readonly awaySinceMs: number | null
  /** The order for its certificate that has come to nothing, and that it may repeat; null: none. */
  readonly lost: { readonly why: string; readonly sinceMs: number } | null
}

/** Empty: it does not wait. */
export const issuerSentences = (
  node: Node,
  profile: Pick<Profile, 'certificate'>,
  { awaySinceMs, lost }: IssuerOfNode,
  nowMs: number,
): readonly string[] => {
  const waits = waitsFor(node, profile, awaySinceMs, nowMs)
  if (waits !== null) return [waits]
  if (lost === null) return []
  const { issuer } = profile.certificate
  return [
    `Its last order to an outside issuer came to nothing at ${isoTime(lost.sinceMs)} (${lost.why}): ` +
      (issuer === builtIn ? 'muster issuer list.' : `muster issuer test ${issuer}.`),
  ]
}

const waitsFor = (
  node: Node,
  { certificate: { issuer, renewTo } }: Pick<Profile, 'certificate'>,
  awaySinceMs: number | null,
  nowMs: number,
): string | null => {
  const slots = slotsOf(node)
  if (awaySinceMs === null || slots === null || slots.pending !== null) return null
  const { issuedAtMs, notAfterMs } = slots.current
  const dueMs = issuedAtMs + renewTo * (notAfterMs - issuedAtMs)
  if (nowMs < dueMs) return null
  return `It waits for issuer ${issuer} since ${isoTime(Math.max(dueMs, awaySinceMs))}: muster issuer show ${issuer}.`
}
