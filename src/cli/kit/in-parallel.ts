/** Works through `items`, `limit` at a time, and returns results in their order. The first error stops new work. */
export const inParallel = async <T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> => {
  const results = new Array<R>(items.length)
  const queue = items.entries()
  let failed = false
  const worker = async () => {
    for (const [at, item] of queue) {
      if (failed) return
      try {
        results[at] = await work(item)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  return results
}
