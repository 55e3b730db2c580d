// Two servers of one cluster can both act as its primary: one that was replaced runs on until it is stopped, and answers reads
// as if nothing had happened. Every promotion begins a timeline with a higher number, so the server with the highest is the
// primary, and a plane that has connected to that one accepts no other.

import type { PgConnection } from './postgres.ts'

export type Timeline = {
  readonly cluster: string
  /** Eight hexadecimal digits. */
  readonly number: string
}

export type NewestPrimary = {
  /** False: another server has replaced it. Connections to a server that this one replaces are cut. */
  admit(connection: PgConnection, timeline: Timeline): boolean
}

export const isNewer = (one: Timeline, other: Timeline): boolean =>
  one.cluster === other.cluster && one.number > other.number

export const openNewestPrimary = (): NewestPrimary => {
  const admitted = new Map<PgConnection, Timeline>()
  let newest: Timeline | null = null
  return {
    admit(connection, timeline) {
      if (newest !== null && isNewer(newest, timeline)) return false
      newest = timeline
      for (const [older, its] of [...admitted]) if (isNewer(timeline, its)) older.destroy()
      admitted.set(connection, timeline)
      connection.onEnd(() => void admitted.delete(connection))
      return true
    },
  }
}
