const firstMs = 1000
const longestMs = 30_000

/** How long a process that ended is left alone before it is started again; `deaths`: in a row. */
export const restartAfterMs = (deaths: number): number => Math.min(longestMs, firstMs * 2 ** (deaths - 1))
