// Durations, counts and quoted sentences as people say them.

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** At most two units, the smaller ones left out. */
export const durationWords = (ms: number): string => {
  const largest = units.findIndex(([, unit]) => ms >= unit)
  if (largest === -1) return 'less than 1 s'
  let restMs = ms
  const words: string[] = []
  for (const [name, unit] of units.slice(largest, largest + 2)) {
    const count = Math.floor(restMs / unit)
    restMs -= count * unit
    if (count > 0) words.push(`${count} ${name}`)
  }
  return words.join(' ')
}

/** `counted(1, 'entry', 'entries')` is `1 entry`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/** A sentence that another one goes on after, or ends with a full stop of its own. */
export const withoutFullStop = (sentence: string): string => sentence.replace(/\.$/, '')
