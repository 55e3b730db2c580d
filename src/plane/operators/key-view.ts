import type { Static } from 'typebox'
import type { OperatorKey } from '#domain/core/principal.ts'
import { isoTime } from '#platform/clock.ts'
import type { KeyView } from '#wire/api/operator-api.ts'
import { isoTimeOrNull } from '#plane/http/iso-time-or-null.ts'

/** Never the hash: whoever reads the list needs it for nothing. */
export const keyView = (key: OperatorKey, forged = false): Static<typeof KeyView> => ({
  id: key.id,
  name: key.name,
  role: key.role,
  created_by: key.createdBy,
  created_at: isoTime(key.createdAtMs),
  revoked_at: isoTimeOrNull(key.revokedAtMs),
  ...(forged ? { forged } : {}),
})
