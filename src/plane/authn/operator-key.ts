// Proof by operator key: `Authorization: Bearer muster_key_...`. The key itself is never stored, only its hash; the
// socket or address a call arrives on proves nothing.

import type { OperatorPrincipal } from '#domain/principal.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import type { Store } from '#plane/store/store.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { KeyBook } from './operator-key-book.ts'

const bearer = /^Bearer (muster_key_[A-Za-z0-9_-]{43})$/i

export const operatorByKey = async (
  store: Pick<Store, 'get'>,
  book: Pick<KeyBook, 'grants'>,
  authorization: string | undefined,
  source: string,
): Promise<OperatorPrincipal | Refusal> => {
  if (authorization === undefined) return refuse('OPERATOR_KEY_REQUIRED')
  const secret = bearer.exec(authorization)?.[1]
  if (secret === undefined) return refuse('OPERATOR_KEY_INVALID', 'expected: Authorization: Bearer muster_key_...')
  const found = await store.get('operator-key', sha256Hex(secret))
  if (found === null || !(await book.grants(found))) return refuse('OPERATOR_KEY_INVALID')
  const { id, name, role } = found.value
  return { kind: 'operator', id, name, role, proof: { by: 'operator-key' }, source }
}
