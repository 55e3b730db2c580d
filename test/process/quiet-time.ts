// Time in which nothing happens, for one plane: its monotonic clock is moved, by which it measures silence. Its timers and the
// wall clock stay as they are.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { eventually } from './eventually.ts'
import { passTime } from './pass-time.ts'
import type { Plane } from './start-plane.ts'

export type QuietTime = {
  /** For `env` of the plane. */
  readonly env: Readonly<Record<string, string>>
  /** Resolves when the plane has looked at its channels by the later time. */
  pass(plane: Pick<Plane, 'data'>, ms: number): Promise<void>
}

const movedMonotonic = path.join(import.meta.dirname, 'moved-monotonic.ts')

export const openQuietTime = (folder: string): QuietTime => {
  const file = path.join(folder, 'quiet')
  const reached = `${file}.reached`
  let aheadMs = 0
  const write = (): void => {
    fs.writeFileSync(`${file}.new`, String(aheadMs))
    fs.renameSync(`${file}.new`, file)
  }
  write()
  const advance = (ms: number): void => {
    aheadMs += ms
    write()
  }
  return {
    env: {
      NODE_OPTIONS: `--import=${movedMonotonic}`,
      TEST_QUIET_FILE: file,
      // A clock that runs away from the other one has been set, to a plane that compares its own with the database's.
      MUSTER_CLOCK_TOLERANCE: '36500d',
    },
    async pass(plane, ms) {
      await passTime({ advance }, plane, ms)
      const hasCome = (): boolean => fs.existsSync(reached) && fs.readFileSync(reached, 'utf8') === String(aheadMs)
      await eventually('the plane to have seen the time pass', hasCome, { withinMs: 60_000 })
    },
  }
}
