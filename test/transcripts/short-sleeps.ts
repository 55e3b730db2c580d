// Minutes pass in a moment: `sleep` of more than a few seconds moves the clocks of every `muster` of the transcript instead, the wall clock
// and the monotonic one, as a machine does that was suspended. The shells keep the real time: what a shell has started shares a semaphore
// of libfaketime with it, which the end of one of them takes away from the others, and then the others fail.

import * as fs from 'node:fs'
import * as path from 'node:path'

const longestRealSeconds = 5
const stepSeconds = 310

export type ShortSleeps = {
  /** What is `./muster` then. */
  readonly command: string
  /** Of the shells. */
  readonly environment: Readonly<Record<string, string>>
}

/** `command`: to which this happens; `library`: libfaketime. */
export const shortSleeps = (folder: string, command: string, library: string): ShortSleeps => {
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
  const faked = path.join(folder, 'muster')
  fs.writeFileSync(faked, `#!/bin/sh\nexport LD_PRELOAD='${library}'\nexec '${command}' "$@"\n`, { mode: 0o755 })
  return {
    command: faked,
    environment: {
      PATH: `${folder}:${process.env['PATH'] ?? ''}`,
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_RESET: '1',
      // File times stay real: a faked stat would make fresh files look old.
      NO_FAKE_STAT: '1',
    },
  }
}
