// Rows of refusal-table.ts: why something about outside issuers is refused.

import type { RefusalRow } from './refusal-table.ts'

// prettier-ignore
export const issuerRefusals = {
  ISSUER_UNAVAILABLE: { status: 503, fault: 'plane', retry: 'later',
    message: 'The issuer of this profile cannot sign now.',
    next: 'Try again after the time in Retry-After; an agent does so automatically. See what is wrong: muster issuer list' },
} as const satisfies Record<string, RefusalRow>
