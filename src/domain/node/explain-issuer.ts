// Why the next certificate of a node is late, where its issuer is outside and does not answer.

import { slotsOf } from '#domain/core/certificate.ts'
import type { Node } from '#domain/core/node.ts'
import type { Profile } from '#domain/core/profile.ts'
import { isoTime } from '#platform/clock.ts'

/** Empty: it does not wait. `awaySinceMs`: since when its issuer has not answered; null: it does. */
export const issuerSentences = (
  node: Node,
  { certificate: { issuer, renewTo } }: Pick<Profile, 'certificate'>,
  awaySinceMs: number | null,
  nowMs: number,
): readonly string[] => {
  const slots = slotsOf(node)
  if (awaySinceMs === null || slots === null || slots.pending !== null) return []
  const { issuedAtMs, notAfterMs } = slots.current
  const dueMs = issuedAtMs + renewTo * (notAfterMs - issuedAtMs)
  if (nowMs < dueMs) return []
  return [`It waits for issuer ${issuer} since ${isoTime(Math.max(dueMs, awaySinceMs))}: muster issuer show ${issuer}.`]
}
