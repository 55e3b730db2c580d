// Whether two operator keys belong to two operators, so that one can approve what the other has planned. Who made a key may have kept it,
// and everything that was made with it.

import type { OperatorKey } from '#domain/core/principal.ts'

type Key = Pick<OperatorKey, 'id' | 'name' | 'createdBy'>

/** `keys`: all that there ever were. One that was revoked has still made those that came from it. */
export const areTwoOperators = (one: Key, other: Key, keys: readonly Key[]): boolean =>
  one.id !== other.id && !comesFrom(one, other, keys) && !comesFrom(other, one, keys)

/**
 * Whether `key` was made with `maker`, over any number of keys in between. A key says the name of its maker. An operator who gets a new
 * key keeps the name, so every key of that name counts as the maker.
 */
const comesFrom = (key: Key, maker: Key, keys: readonly Key[]): boolean => {
  const names = new Set([key.name])
  // Grows while it is walked.
  for (const name of names) {
    if (name === maker.name) return true
    const named = keys.filter((one) => one.name === name)
    // A row that is gone, or that no plane wrote: what came before it is unknown, and might be the maker.
    if (named.length === 0) return true
    for (const { createdBy } of named)
      if (createdBy.startsWith(byOperator)) names.add(createdBy.slice(byOperator.length))
  }
  return false
}

/** Others are made by the plane or on its host. */
const byOperator = 'operator:'
