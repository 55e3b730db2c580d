// Randomness that is the same in every run of a test: SHA-256 over a seed and a counter.

import { createHash } from 'node:crypto'
import type { Random } from '#platform/random.ts'

export const seededRandom = (seed: string | number): Random => {
  let counter = 0
  let pool = Buffer.alloc(0)
  const take = (count: number): Buffer => {
    while (pool.length < count)
      pool = Buffer.concat([pool, createHash('sha256').update(`${seed}/${counter++}`).digest()])
    const taken = Buffer.from(pool.subarray(0, count))
    pool = pool.subarray(count)
    return taken
  }
  return {
    bytes: take,
    unit: () => take(6).readUIntBE(0, 6) / 2 ** 48,
  }
}
