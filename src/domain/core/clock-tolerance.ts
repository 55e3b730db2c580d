// What was made in the future was made by a clock that was wrong: it does not hold yet, and was meant to end long before it
// does. Clocks of machines that work together differ a little, so a tolerance belongs to every such comparison.

/** Certificates are backdated by so much, and so far apart two replicas may be. */
const leastMs = 60_000

/** Where the setting of the domain is not at hand. */
const usualClockToleranceMs = 5 * 60_000

export const isFromFuture = (madeAtMs: number, nowMs: number, toleranceMs = usualClockToleranceMs): boolean =>
  madeAtMs - nowMs > Math.max(toleranceMs, leastMs)
