// How long a login at an outside issuer lasts: it is renewed at half of its life, and people are told when a third of it is left.

export type LoginLife = {
  /** By the same clock as `nowMs` below. */
  readonly sinceMs: number
  /** Null: it has no end. */
  readonly lifeMs: number | null
}

export const isToBeRenewed = ({ sinceMs, lifeMs }: LoginLife, nowMs: number): boolean =>
  lifeMs !== null && nowMs - sinceMs >= lifeMs / 2

/** It should have been renewed long ago: either that fails, or it cannot be renewed any more. */
export const isEnding = ({ sinceMs, lifeMs }: LoginLife, nowMs: number): boolean =>
  lifeMs !== null && nowMs - sinceMs >= (lifeMs * 2) / 3

export const isOver = ({ sinceMs, lifeMs }: LoginLife, nowMs: number): boolean =>
  lifeMs !== null && nowMs - sinceMs >= lifeMs

export const leftMs = ({ sinceMs, lifeMs }: LoginLife, nowMs: number): number | null =>
  lifeMs === null ? null : Math.max(0, sinceMs + lifeMs - nowMs)

/**
 * A renewal that gave noticeably less than the first life says that the longest life is near: it is the last one, and it is judged by the first life.
 * Renewed on and on it would get shorter each time, and never seem to end. Null: it goes on.
 */
export const lastLife = (first: LoginLife, renewed: LoginLife): LoginLife | null =>
  first.lifeMs !== null && renewed.lifeMs !== null && renewed.lifeMs < first.lifeMs * 0.9
    ? { sinceMs: renewed.sinceMs + renewed.lifeMs - first.lifeMs, lifeMs: first.lifeMs }
    : null
