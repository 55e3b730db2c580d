// What the agent of a node last reported as wrong, unless it is over. Pure.

import { parseIsoTime } from '#platform/clock.ts'

/** A line of the story that an agent reports. */
export type ReportedLine = {
  readonly at: string
  readonly place: string
  readonly event: 'failed' | 'tried' | 'succeeded' | 'changed'
  readonly code: string
}

/**
 * The last failure of the story that nothing makes up for. `channelSinceMs`: when the newest channel that is open now was opened;
 * null: there is none, or that is not known.
 *
 * An agent forgets what was wrong when it ends or loses its identity, and then records no success of that place: its channel opens
 * without one, and its renewal has none for as long as its next certificate is young.
 */
export const unresolvedFailure = <Line extends ReportedLine>(
  story: readonly Line[],
  channelSinceMs: number | null,
): Line | null =>
  story.findLast(
    (line, at) =>
      line.event === 'failed' &&
      !isBeforeChannel(line, channelSinceMs) &&
      !story.slice(at + 1).some((later) => resolves(later, line)),
  ) ?? null

const resolves = (later: ReportedLine, { place }: ReportedLine): boolean => {
  if (later.event === 'succeeded') return later.place === place || (isEntry(later) && ofIdentity.has(place))
  return place === 'channel' && later.place === 'channel' && later.code === 'channel_open'
}

/** With the identity that it brings, no failure of the one before goes on. */
const isEntry = ({ place }: ReportedLine): boolean => place === 'enrollment' || place === 'recovery'
const ofIdentity: ReadonlySet<string> = new Set(['enrollment', 'recovery', 'renewal', 'rehearsal', 'channel'])

/** A report tells only later that the channel it comes over was opened. */
const isBeforeChannel = ({ place, at }: ReportedLine, channelSinceMs: number | null): boolean => {
  const atMs = parseIsoTime(at)
  return place === 'channel' && channelSinceMs !== null && atMs !== null && atMs < channelSinceMs
}
