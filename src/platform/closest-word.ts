// The word that was probably meant by one that is unknown.

/** Null: none is near enough. */
export const closestTo = (word: string, known: readonly string[]): string | null => {
  const wanted = word.toLowerCase()
  const near = known
    .map((one) => ({ one, far: distance(wanted, one.toLowerCase()) }))
    .filter(({ one, far }) => far <= Math.max(1, Math.floor(one.length / 3)))
    .sort((a, b) => a.far - b.far)
  return near[0]?.one ?? null
}

/** How many letters have to be changed, added or taken away. */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1]
    for (const [place, wanted] of [...other].entries()) {
      const changed = (row[place] ?? 0) + (letter === wanted ? 0 : 1)
      next.push(Math.min(changed, (row[place + 1] ?? 0) + 1, (next[place] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
