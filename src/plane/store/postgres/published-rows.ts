// Subscribers keep the last published row, and two parties publish: the flows of this replica, when their commits are answered, and
// the feed, when it has read the commits of others. Both read the database over different connections, so either can overtake the
// other. This file gives the party that is about to publish the newer row.
//
// Rows are compared by their versions. Denials and bans have none that a commit could know beforehand, and need none: of two denials
// subscribers keep the one that lasts longer, and a ban never changes.

import assert from 'node:assert/strict'
import { type Change, nextVersion, type RowKind, type RowTypes, type Write } from '#domain/core/change.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { Committed } from '#plane/store/contract/store.ts'

export type PublishedRows = {
  /** A commit of this replica that is under way. */
  awaited(change: Change): Awaited
  /** Before rows are read for publication: rows that flows publish from now on may be newer than what is found. */
  beginReading(): void
  /** They have been published, in the turn in which they were found. */
  endReading(): void
  /** The feed is about to publish the row; returns a newer one to publish instead, if there is one. */
  newest(row: FoundRow): Write
}

export type Awaited = {
  /** Its flow is about to publish it; returns newer rows to publish instead, where there are any. */
  committed(committed: Committed): Committed
  /** It publishes nothing. */
  failed(): void
}

export type FoundRow = { readonly key: string; readonly version: number; readonly write: Write }

/** `overtakenBy`: what the feed has published of its rows meanwhile, where that is newer. */
type UnderWay = { readonly versions: ReadonlyMap<string, number>; readonly overtakenBy: Map<string, FoundRow> }

export const openPublishedRows = (): PublishedRows => {
  const underWay = new Map<string, Set<UnderWay>>()
  /** Published by flows since a reading began; null: there is no reading. */
  let publishedHere: Map<string, FoundRow> | null = null

  const leave = (one: UnderWay): void => {
    for (const place of one.versions.keys()) {
      const writers = underWay.get(place)
      writers?.delete(one)
      if (writers?.size === 0) underWay.delete(place)
    }
  }

  return {
    awaited(change) {
      const one: UnderWay = { versions: versionsOf(change), overtakenBy: new Map() }
      for (const place of one.versions.keys()) {
        const writers = underWay.get(place)
        if (writers === undefined) underWay.set(place, new Set([one]))
        else writers.add(one)
      }
      return {
        committed(committed) {
          leave(one)
          const writes = committed.writes.map((write) => {
            const key = keyOf(write)
            const place = placeOf(write.put, key)
            const version = one.versions.get(place)
            if (version === undefined) return write
            const newest = one.overtakenBy.get(place) ?? { key, version, write }
            publishedHere?.set(place, newest)
            return newest.write
          })
          return { ...committed, writes }
        },
        failed: () => leave(one),
      }
    },
    beginReading: () => void (publishedHere = new Map()),
    endReading: () => void (publishedHere = null),
    newest(row) {
      const place = placeOf(row.write.put, row.key)
      const here = publishedHere?.get(place)
      if (here !== undefined && here.version > row.version) return here.write
      for (const one of underWay.get(place) ?? []) {
        const version = one.versions.get(place)
        assert(version !== undefined)
        if (row.version > version) one.overtakenBy.set(place, row)
      }
      return row.write
    },
  }
}

/** The version each written row will have, where that is known before it is written. */
const versionsOf = (change: Change): ReadonlyMap<string, number> => {
  const read = new Map(change.reads.map((one) => [placeOf(one.row, one.key), nextVersion(one)]))
  const versions = new Map<string, number>()
  for (const write of change.writes) {
    const place = placeOf(write.put, keyOf(write))
    const next = write.put === 'denial' ? undefined : (read.get(place) ?? (write.put === 'certificate' ? 1 : undefined))
    if (next !== undefined) versions.set(place, next)
  }
  return versions
}

const keyOf = (write: Write): string => keyIn(write.put, write.value as never)
const keyIn = <K extends RowKind>(kind: K, value: RowTypes[K]): string => tableShapes[kind].key(value)
const placeOf = (kind: RowKind, key: string): string => `${kind} ${key}`
