// What is to be delivered next, and what becomes of an attempt: pure, on a window of the journal's entries about alerts.
// The entries of one alert go out in their order; one that its receiver does not want holds up no other alert.

import { alertKey } from '#domain/alerts/alert.ts'
import type { AlertKind } from '#domain/alerts/alert-kinds.ts'
import type { StoredEntry, WebhookProgress } from '#plane/store/contract/store.ts'

export type Delivery = {
  readonly stored: StoredEntry
  /** When this process came upon it; monotonic, as is `notBeforeMs`. */
  readonly foundMs: number
  readonly attempts: number
  readonly notBeforeMs: number
  readonly settled: boolean
}

/** `refused`: by the receiver, for what it is. `trouble`: the receiver was not reached, or has trouble of its own. */
export type Attempt = 'delivered' | 'refused' | 'trouble'

const givenUpAfterMs = 24 * 3600 * 1000
const firstWaitMs = 5000
const longestWaitMs = 15 * 60_000

/** 5 s, 15 s, 45 s, ... and never longer than a quarter of an hour. */
export const waitMs = (failures: number): number =>
  Math.min(longestWaitMs, firstWaitMs * 3 ** Math.max(0, failures - 1))

export const newDelivery = (stored: StoredEntry, foundMs: number, settled: boolean): Delivery => ({
  stored,
  foundMs,
  attempts: 0,
  notBeforeMs: 0,
  settled,
})

const aboutOf = ({ stored }: Delivery): string => {
  const { kind, subject } = stored.entry.body
  return alertKey({ kind: kind as AlertKind, subject: String(subject) })
}

/** The oldest that may go out now; else when one may, or null when there is nothing to do. */
export const nextDelivery = (
  window: readonly Delivery[],
  nowMs: number,
): { readonly due: Delivery | null; readonly waitMs: number | null } => {
  const seen = new Set<string>()
  let soonestMs: number | null = null
  for (const delivery of window) {
    if (delivery.settled) continue
    const about = aboutOf(delivery)
    if (seen.has(about)) continue
    seen.add(about)
    if (delivery.notBeforeMs <= nowMs) return { due: delivery, waitMs: null }
    soonestMs = Math.min(soonestMs ?? Infinity, delivery.notBeforeMs)
  }
  return { due: null, waitMs: soonestMs === null ? null : soonestMs - nowMs }
}

/** Tried for a day. */
export const isGivenUp = ({ foundMs }: Delivery, nowMs: number): boolean => nowMs - foundMs >= givenUpAfterMs

/** It could not be delivered in time: it is delivered only while the alert is still open. */
export const isOldNews = ({ stored }: Delivery, wallMs: number): boolean => wallMs - stored.entry.atMs >= givenUpAfterMs

export const progressOf = (before: WebhookProgress['after'], window: readonly Delivery[]): WebhookProgress => {
  const open = window.findIndex(({ settled }) => !settled)
  const done = open === -1 ? window : window.slice(0, open)
  return {
    after: done.at(-1)?.stored.cursor ?? before,
    settled: window
      .slice(done.length)
      .filter(({ settled }) => settled)
      .map(({ stored }) => stored.entry.operation),
  }
}
