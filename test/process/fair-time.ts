// Time in which a process could run. Tests share the machine with each other and with whatever else its user does, and a wait
// that counts wall seconds fails where they are many. Of each moment counts the share of a processor that is there for each
// process that wants to run: on an idle machine all of it, beside three others on two processors half.

import * as fs from 'node:fs'
import * as os from 'node:os'

const sampleEveryMs = 50
const processors = os.availableParallelism()
let fairMs = 0
let sampledMs = performance.now()

/** Milliseconds of that time since some moment. Never faster than the wall clock, which it is where nobody says who runs. */
export const fairNowMs = (): number => {
  const nowMs = performance.now()
  fairMs += (nowMs - sampledMs) * Math.min(1, processors / wantingToRun())
  sampledMs = nowMs
  return fairMs
}

// What happens between two questions counts, too.
setInterval(fairNowMs, sampleEveryMs).unref()

/** This process is one of them. */
const wantingToRun = (): number => {
  try {
    return Number(/(\d+)\/\d+/.exec(fs.readFileSync('/proc/loadavg', 'utf8'))?.[1] ?? 1)
  } catch {
    return 1
  }
}

/** How much of it has passed since the call. For upper bounds; a lower bound is one of the wall clock. */
export const fairStopwatch = (): (() => number) => {
  const startMs = fairNowMs()
  return () => fairNowMs() - startMs
}
