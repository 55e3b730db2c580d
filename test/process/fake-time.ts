// One wall clock for several processes, moved by the test: libfaketime reads its offset from a file. Monotonic time is
// left alone, so that timers go on as they would after someone has set the clock. Ask for the peer `faketime` first.

import * as fs from 'node:fs'
import * as path from 'node:path'

export type FakeTime = {
  /** For `env` of a plane and its agents. */
  readonly env: Readonly<Record<string, string>>
  nowMs(): number
  advance(ms: number): void
}

export const openFakeTime = (folder: string, library: string, startOffsetMs = 0): FakeTime => {
  const file = path.join(folder, 'faketime')
  let offsetMs = startOffsetMs
  const write = (): void => {
    const seconds = (offsetMs / 1000).toFixed(3)
    // Replaced in one step: a process may read it at any moment.
    fs.writeFileSync(`${file}.new`, `${offsetMs < 0 ? '' : '+'}${seconds}\n`)
    fs.renameSync(`${file}.new`, file)
  }
  write()
  return {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_RESET: '1',
      // File times stay real: a faked stat would make fresh files look old.
      NO_FAKE_STAT: '1',
    },
    nowMs: () => Date.now() + offsetMs,
    advance(ms) {
      offsetMs += ms
      write()
    },
  }
}
