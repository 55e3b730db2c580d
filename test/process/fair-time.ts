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

const openLoad = (): number | null => {
  try {
    return fs.openSync('/proc/loadavg', 'r')
  } catch {
    return null
  }
}

/** Kept open: it is read twenty times a second in every process of the tests. */
const load = openLoad()
const loadText = Buffer.alloc(128)

/** This process is one of them. */
const wantingToRun = (): number => {
  if (load === null) return 1
  const length = fs.readSync(load, loadText, 0, loadText.length, 0)
  return Number(/(\d+)\/\d+/.exec(loadText.toString('latin1', 0, length))?.[1] ?? 1)
}

/** How much of it has passed since the call. For upper bounds; a lower bound is one of the wall clock. */
export const fairStopwatch = (): (() => number) => {
  const startMs = fairNowMs()
  return () => fairNowMs() - startMs
}
