import type { Issuance } from '#domain/identity/issuance.ts'
import { isoTime } from '#platform/clock.ts'
import type { IssuanceView } from '#wire/identity/issuance-api.ts'

export const issuanceView = (issuance: Issuance): IssuanceView => {
  if (issuance.kind === 'open') return { state: 'open', halted: null }
  const { by, sinceMs, reason, renewals } = issuance
  return { state: 'halted', halted: { by, since: isoTime(sinceMs), reason, renewals } }
}
