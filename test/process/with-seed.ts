import { randomBytes } from 'node:crypto'
import type { Random } from '#platform/random.ts'
import { seededRandom } from '../fakes/seeded-random.ts'

/** Chance that differs from run to run. A failure names its seed, and MUSTER_SEED makes the same choices again. */
export const withSeed = async (run: (random: Random) => Promise<void>): Promise<void> => {
  const seed = process.env['MUSTER_SEED'] ?? randomBytes(4).toString('hex')
  try {
    await run(seededRandom(seed))
  } catch (error) {
    throw new Error(`MUSTER_SEED=${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}
