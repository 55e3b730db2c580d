// Two servers of one cluster can take themselves for its primary: one that was given up runs on until somebody stops it,
// and answers reads as if nothing had happened. Every promotion begins a timeline with a higher number, so the one with
// the highest is the primary, and whoever has spoken to that one believes no other.

import type { PgSession } from './postgres.ts'

export type Timeline = {
  readonly cluster: string
  /** Eight hexadecimal digits. */
  readonly number: string
}

export type NewestPrimary = {
  /** False: another has taken its place. Whoever is connected to one whose place this one has taken is cut off. */
  admit(session: PgSession, timeline: Timeline): boolean
}

export const isNewer = (one: Timeline, other: Timeline): boolean =>
  one.cluster === other.cluster && one.number > other.number

export const openNewestPrimary = (): NewestPrimary => {
  const admitted = new Map<PgSession, Timeline>()
  let newest: Timeline | null = null
  return {
    admit(session, timeline) {
      if (newest !== null && isNewer(newest, timeline)) return false
      newest = timeline
      for (const [older, its] of [...admitted]) if (isNewer(timeline, its)) older.destroy()
      admitted.set(session, timeline)
      session.onEnd(() => void admitted.delete(session))
      return true
    },
  }
}
