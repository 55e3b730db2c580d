// A source whose connections end without an answered request is slowed down: a handshake is what a stranger can make the
// plane pay for most cheaply. It is slowed and not shut out, because honest machines may share its address: a fleet behind
// one address, of whose many connections some break, is never slowed, because every good one makes up for a broken one.

export type SourcePace = {
  /** Whether a connection of that source may begin now; counts it if so. */
  admits(source: string): boolean
  /** A connection of that source cost something and led to nothing; `weight`: as much as so many of them. */
  offended(source: string, weight?: number): void
  /** A connection of that source was answered, or became a channel: it makes up for one that led to nothing. */
  credited(source: string): void
  /** To be called every `paceTickMs`. */
  tick(): void
}

/**
 * What a slowed source may cost in a second is spread over ticks. Given at once, the shares of a few dozen sources would
 * keep the event loop from everybody else for a tenth of every second.
 */
export const paceTickMs = 50
const ticksPerSecond = 1000 / paceTickMs
/** Port scans and broken links come to a few. */
const freeOffences = 30
const mostOffences = 60
/** A handshake costs about half a millisecond: a source that is slowed costs a hundredth of a processor. */
const pacedPerTick = 1
/** However much connections cost, their source waits for no more than a second: one that is cut for pipelining has 2 of them a second. */
const mostSpent = pacedPerTick * ticksPerSecond
const forgivenPerSecond = 3
/** Beyond so many, sources are not remembered: an attacker with that many addresses is not stopped by pacing them. */
const mostSources = 16_384

export const openSourcePace = (): SourcePace => {
  const offences = new Map<string, number>()
  /** What a slowed source has used of its pace, in connections; may be more than a tick gives. */
  const spent = new Map<string, number>()
  let ticks = 0
  const lower = (counts: Map<string, number>, source: string, by: number): void => {
    const count = counts.get(source) ?? 0
    if (count > by) counts.set(source, count - by)
    else counts.delete(source)
  }
  const isSlowed = (source: string): boolean => (offences.get(source) ?? 0) > freeOffences
  const spend = (source: string, cost: number): void =>
    void spent.set(source, Math.min(mostSpent, (spent.get(source) ?? 0) + cost))
  return {
    admits(source) {
      if (!isSlowed(source)) return true
      if ((spent.get(source) ?? 0) >= pacedPerTick) return false
      spend(source, 1)
      return true
    },
    offended(source, weight = 1) {
      if (!offences.has(source) && offences.size >= mostSources) return
      offences.set(source, Math.min(mostOffences, (offences.get(source) ?? 0) + weight))
      if (isSlowed(source)) spend(source, weight - 1)
    },
    credited(source) {
      lower(offences, source, 1)
      lower(spent, source, 1)
    },
    tick() {
      for (const source of spent.keys()) lower(spent, source, pacedPerTick)
      ticks += 1
      if (ticks % ticksPerSecond !== 0) return
      for (const source of offences.keys()) lower(offences, source, forgivenPerSecond)
    },
  }
}
