// Slows down a source whose connections end without an answered request: a handshake is the cheapest way for an anonymous
// caller to cost the plane work. The source is not shut out, because honest machines may share its address. A fleet behind one
// address, some of whose connections break, is not slowed, because every good connection makes up for a broken one.

export type SourcePace = {
  /** Whether a connection of that source may begin now; counts it if so. */
  admits(source: string): boolean
  /** A connection of that source cost work and led to nothing; `weight`: the number of connections it counts as. */
  offended(source: string, weight?: number): void
  /** A connection of that source was answered, or became a channel: it makes up for one that led to nothing. */
  credited(source: string): void
  /** To be called every `paceTickMs`. */
  tick(): void
}

/**
 * The connections of a slowed source are spread over ticks. Accepted at once, those of a few dozen sources would block the event
 * loop for a tenth of every second.
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
/** Beyond this number, sources are not tracked: limits for each source do not stop an attacker with that many addresses. */
const mostSources = 16_384

export const openSourcePace = (): SourcePace => {
  const offences = new Map<string, number>()
  /** The connections that a slowed source has used; may be more than a tick allows. */
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
