// A failure and all that follows from it are one story. It begins with the first try that failed and ends when a channel
// opens; until then everything that is written down or sent about it carries the same correlation id.

import type { Clock } from '#platform/clock.ts'
import { sortableId, type Random } from '#platform/random.ts'
import type { KeyRequest } from '#agent/state/credentials.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import type { Trouble } from '#agent/core/trouble.ts'

export type Story = {
  readonly correlation: string
  /** By the clock as it is judged now, which may be years from what it said then. */
  readonly sinceMs: number
  /** What failed last. */
  readonly trouble: Trouble
}

/**
 * `same`: a recovery has just brought the roots that the node already had. Then the server is not the plane, and another
 * recovery would cost and not help. `kept`: the recovery brought no roots.
 */
export type RootsNow = 'same' | 'other' | 'kept'

export type Episode = {
  /** Null while nothing is wrong with how the plane takes us. */
  current(): Story | null
  /** Begins one where there is none. */
  failed(what: Trouble): Story
  /** How many tries in a row met a server that our roots do not know, or that has another name; 0 for a day after a recovery brought the same roots. */
  distrusted(): number
  channelIsOpen(): boolean
  /** The story goes on with an identity, or with roots, that have not failed yet. */
  begunAnew(roots: RootsNow): void
  over(): void
  /** A record that passes its events on to the episode. */
  listening(record: AgentRecord): AgentRecord
}

/** A plane under another name is as much out of reach as one under another root. */
const countsAsDistrust: ReadonlySet<Trouble['class']> = new Set([
  'server_tls_untrusted',
  'endpoint_profile_drift',
] as const)

/** Otherwise an attacker on the network who lets the plane through at times could use up the recovery budget. */
const rootsAreGoodForMs = 86_400_000

/** `left`: the request a process before this one has left: a recovery it had begun goes on with its story. */
export const openEpisode = (clock: Clock, random: Random, left: KeyRequest | null): Episode => {
  let begun = left?.purpose.kind === 'recover' ? { ...left.purpose, sinceMs: left.sinceMs } : null
  let story: Omit<Story, 'sinceMs'> | null = null
  let begunAtMs = 0
  let distrusted = 0
  let rootsGoodUntilMs = -Infinity
  let open = false

  const failed = (what: Trouble): Story => {
    distrusted = countsAsDistrust.has(what.class) ? distrusted + 1 : 0
    if (story === null) begunAtMs = clock.monotonicMs()
    const { correlation } = story ?? begun ?? { correlation: sortableId(clock.nowMs(), random) }
    story = { correlation, trouble: what }
    return dated(story)
  }
  const dated = (what: Omit<Story, 'sinceMs'>): Story => {
    const sinceMs = begun?.sinceMs ?? clock.nowMs() - (clock.monotonicMs() - begunAtMs)
    return { ...what, sinceMs }
  }
  const over = (): void => {
    begun = null
    story = null
    distrusted = 0
  }
  return {
    current: () => (story === null ? null : dated(story)),
    failed,
    distrusted: () => (clock.monotonicMs() < rootsGoodUntilMs ? 0 : distrusted),
    channelIsOpen: () => open,
    begunAnew: (roots) => {
      distrusted = 0
      if (roots !== 'kept') rootsGoodUntilMs = roots === 'same' ? clock.monotonicMs() + rootsAreGoodForMs : -Infinity
    },
    over,
    listening: (record) => ({
      ...record,
      channel: (isOpen, url) => {
        open = isOpen
        if (isOpen) over()
        record.channel(isOpen, url)
      },
      trouble: (place, what, nextTryAtMs, correlation) => {
        if (place === 'channel' || place === 'renewal') failed(what)
        // A full disk or a wrong clock is another story.
        const isOurs = place === 'channel' || place === 'renewal' || place === 'recovery' || place === 'enrollment'
        record.trouble(place, what, nextTryAtMs, correlation ?? (isOurs ? (story?.correlation ?? null) : null))
      },
    }),
  }
}
