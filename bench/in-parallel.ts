/** Does it `count` times, so many at once. Rejects with the first failure, once the others under way have ended. */
export const inParallel = async (atOnce: number, count: number, run: (at: number) => Promise<void>): Promise<void> => {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await run(next++)
  }
  const workers = await Promise.allSettled(Array.from({ length: atOnce }, worker))
  for (const one of workers) if (one.status === 'rejected') throw one.reason
}
