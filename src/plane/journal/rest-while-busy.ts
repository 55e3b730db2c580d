// How long work in the background rests after each of its slices: for machines that enroll or come back all at once, the
// verification of the journal has time. It goes on all the same, so that a plane that is always busy gets to the end of it.

/** Behind each slice of 8 ms: at most a quarter of one core. */
const restMs = 24
/** Behind each slice while others need the event loop: 2 % of one core. */
const longestRestMs = 17 * restMs
const busyFrom = 0.5

/** `loopLoad`: the share of the time since its last call in which the event loop had work. */
export const restWhileBusy = async (pause: (ms: number) => Promise<void>, loopLoad: () => number): Promise<void> => {
  // What this work itself has used counts for nothing.
  loopLoad()
  for (let restedMs = 0; restedMs < longestRestMs; restedMs += restMs) {
    await pause(restMs)
    if (loopLoad() < busyFrom) return
  }
}
