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
  /** To be called every second. */
  tick(): void
}

/** Port scans and broken links come to a few. */
const freeOffences = 30
const mostOffences = 60
/** A handshake costs about half a millisecond: a source that is slowed costs a hundredth of a processor. */
const pacedPerSecond = 20
const forgivenPerSecond = 3
/** Beyond so many, sources are not remembered: an attacker with that many addresses is not stopped by pacing them. */
const mostSources = 16_384

export const openSourcePace = (): SourcePace => {
  const offences = new Map<string, number>()
  const admitted = new Map<string, number>()
  const forgive = (source: string, most: number): void => {
    const count = offences.get(source) ?? 0
    if (count > most) offences.set(source, count - most)
    else offences.delete(source)
  }
  return {
    admits(source) {
      if ((offences.get(source) ?? 0) <= freeOffences) return true
      const before = admitted.get(source) ?? 0
      if (before >= pacedPerSecond) return false
      admitted.set(source, before + 1)
      return true
    },
    offended(source, weight = 1) {
      if (!offences.has(source) && offences.size >= mostSources) return
      offences.set(source, Math.min(mostOffences, (offences.get(source) ?? 0) + weight))
    },
    credited: (source) => forgive(source, 1),
    tick() {
      admitted.clear()
      for (const source of offences.keys()) forgive(source, forgivenPerSecond)
    },
  }
}
