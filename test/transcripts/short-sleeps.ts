// Minutes pass in a moment: `sleep` of more than a few seconds moves the clocks of every process of the transcript instead, the wall clock
// and the monotonic one, as a machine does that was suspended.

import * as fs from 'node:fs'
import * as path from 'node:path'

const longestRealSeconds = 5
const stepSeconds = 310

/** The environment of commands to which this happens; `library`: libfaketime. */
export const shortSleeps = (folder: string, library: string): Readonly<Record<string, string>> => {
  const clock = path.join(folder, 'clock')
  fs.writeFileSync(clock, '+0\n')
  // Processes read the clock every second, and what they do every five minutes has its turn each time.
  const script = `#!/bin/sh
if [ "$1" -le ${longestRealSeconds} ]; then exec /bin/sleep "$1"; fi
left=$1
while [ "$left" -gt 0 ]; do
  step=$((left < ${stepSeconds} ? left : ${stepSeconds}))
  left=$((left - step))
  before=$(tr -d '+' < '${clock}')
  echo "+$((before + step))" > '${clock}.new' && mv '${clock}.new' '${clock}' && /bin/sleep 3
done
`
  fs.writeFileSync(path.join(folder, 'sleep'), script, { mode: 0o755 })
  return {
    PATH: `${folder}:${process.env['PATH'] ?? ''}`,
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_RESET: '1',
    // File times stay real: a faked stat would make fresh files look old.
    NO_FAKE_STAT: '1',
  }
}
