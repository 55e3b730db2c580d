// Several chains as one story: by operation id, which sorts by time, and never against the order of a chain. A clock that
// was set back makes entries come late, and nothing else.

type Placed = { readonly chain: string; readonly sequence: number; readonly operation: string }

/** `rows`: of each chain a run of its entries. Oldest first. */
export const oldestFirst = <T extends Placed>(rows: readonly T[], most: number): readonly T[] =>
  merged(runsOf(rows), most, (one, other) => one.operation < other.operation)

/** The newest of them, and of those the oldest first. */
export const newestOf = <T extends Placed>(rows: readonly T[], most: number): readonly T[] =>
  merged(
    runsOf(rows).map((run) => run.toReversed()),
    most,
    (one, other) => one.operation > other.operation,
  ).toReversed()

const runsOf = <T extends Placed>(rows: readonly T[]): readonly (readonly T[])[] =>
  [...Map.groupBy(rows, ({ chain }) => chain).values()].map((run) =>
    run.toSorted((one, other) => one.sequence - other.sequence),
  )

const merged = <T>(runs: readonly (readonly T[])[], most: number, isBefore: (one: T, other: T) => boolean): T[] => {
  const taken = runs.map(() => 0)
  const result: T[] = []
  while (result.length < most) {
    let next: { readonly run: number; readonly row: T } | null = null
    for (const [run, rows] of runs.entries()) {
      const row = rows[taken[run] as number]
      if (row !== undefined && (next === null || isBefore(row, next.row))) next = { run, row }
    }
    if (next === null) break
    result.push(next.row)
    taken[next.run] = (taken[next.run] as number) + 1
  }
  return result
}
