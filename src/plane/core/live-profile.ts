import type { Row } from '#domain/core/change.ts'
import type { Profile } from '#domain/core/profile.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** One that an operator may still name. A node that was revoked before its profile was deleted keeps the tombstone, which `get` finds. */
export const liveProfile = async (store: Pick<Store, 'get'>, name: string): Promise<Row<Profile> | Refusal> => {
  const row = await store.get('profile', name)
  return row === null || row.value.deletedAtMs !== null ? refuse('PROFILE_NOT_FOUND', name) : row
}
