// The record of an agent: its events, its status and its counters. The parts of the agent write it, and status, explanation,
// reports with their conditions, and metrics are projections of it. It is in memory; record-files.ts writes to disk what has
// to be there after a crash.

import { isoTime, type Clock } from '#platform/clock.ts'
import { takesNudges } from '#platform/signals.ts'
import { ownMark } from '#platform/process-mark.ts'
import { musterVersion as agentVersion } from '#platform/this-process.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import type { AgentStorage } from '#agent/state/storage.ts'
import { withEvent, type NewEvent, type RecordedEvent } from './events.ts'
import { counted, noFigures, type Counted, type Figures } from './figures.ts'
import type { Phase, Place, StatusFile, StatusTrouble } from './status-file.ts'

/** One moment of a record. */
export type Recorded = {
  /** The status file, without the part about the plane, which comes from the figures. */
  readonly status: Omit<StatusFile, 'plane'>
  readonly figures: Figures
  /** What happened, the newest last. */
  readonly events: readonly RecordedEvent[]
}

/** What the parts of the agent note. */
export type AgentRecord = {
  phase(phase: Phase): void
  /** Who the node is and what it holds; only what is given changes. */
  facts(
    facts: Partial<
      Pick<
        StatusFile,
        | 'node_id'
        | 'domain'
        | 'profile'
        | 'vcluster'
        | 'certificate'
        | 'trust'
        | 'reports'
        | 'overlay'
        | 'wireguard'
        | 'outputs'
        | 'helper'
        | 'tasks'
      >
    >,
  ): void
  channel(open: boolean, url: string | null): void
  /** Where the identity in use comes from. */
  source(source: Figures['source']): void
  /** Records a change of the node, in a sentence, as an event only. */
  changed(place: string, code: string, text: string): void
  /** Records an attempt, in a sentence such as "renew the certificate", as an event only. */
  attempt(place: Place, text: string): void
  /** Records a success, which resolves the trouble of that place. */
  success(place: Place, text: string): void
  /** Counts attempts while the code stays the same. `correlation`: the id of the episode, as the plane gets it. */
  trouble(place: Place, trouble: Trouble, nextTryAtMs: number | null, correlation?: string | null): void
  /** Removes the trouble of that place. `unresolved`: nothing is tried there any more, so no success is recorded. */
  clear(place: Place, unresolved?: 'unresolved'): void
  /** Withdraws trouble that was recorded by mistake: removes that code at every place. */
  withdraw(code: string, why: string): void
  count(what: Counted): void
  /** Records how the agent ended. */
  end(outcome: AgentOutcome): void
  now(): Recorded
  /** Since when there is little room on the disk, as far as this was asked; null: there is enough now. */
  pressedSince(): string | null
  /** Called after each change of what is written to disk. */
  watch(changed: (what: 'status' | 'events') => void): void
}

/** `before`: the events that earlier processes have left. */
export const openRecord = (
  clock: Clock,
  storage: Pick<AgentStorage, 'pressure'>,
  before: readonly RecordedEvent[] = [],
): AgentRecord => {
  const timeNow = (): string => isoTime(clock.nowMs())
  let status = begun(timeNow())
  let figures = noFigures
  let events = before
  let pressedSince: string | null = null
  let changed: (what: 'status' | 'events') => void = () => {}

  const change = (patch: Partial<StatusFile>): void => {
    status = { ...status, ...patch }
    changed('status')
  }
  const count = (what: Counted): void => {
    figures = counted(figures, what, clock.nowMs())
  }
  const note = (place: string, event: NewEvent['event'], what: Partial<NewEvent> & { readonly text: string }): void => {
    if (event === 'tried' && storage.pressure())
      return count({ kind: 'dropped', source: 'record', reason: 'disk_pressure', count: 1 })
    const nothing = { code: '', next: '', class: null, correlation: null, next_try: null, evidence: {} }
    events = withEvent(events, { ...nothing, ...what, place, event }, timeNow())
    changed('events')
  }
  const troubleAt = (place: Place): StatusTrouble | undefined => status.troubles.find((entry) => entry.place === place)
  const over = (place: Place): void => change({ troubles: status.troubles.filter((entry) => entry.place !== place) })

  return {
    phase: (phase) => {
      if (phase !== status.phase) change({ phase, phase_since: timeNow() })
    },
    facts: change,
    channel: (open, url) => {
      if (open !== status.channel.open) note('channel', 'changed', channelEvent(open, url))
      change({ channel: { open, url, since: timeNow() } })
    },
    source: (source) => {
      if (source !== figures.source)
        note('agent', 'changed', { code: 'source', text: `Its identity comes from ${source} now.` })
      figures = { ...figures, source }
      change({ source })
    },
    changed: (place, code, text) => note(place, 'changed', { code, text }),
    attempt: (place, text) => note(place, 'tried', { text }),
    success: (place, text) => {
      note(place, 'succeeded', { text, correlation: troubleAt(place)?.correlation ?? null })
      over(place)
    },
    trouble: (place, trouble, nextTryAtMs, correlation = null) => {
      const earlier = troubleAt(place)
      const same = earlier !== undefined && earlier.code === trouble.code
      const entry: StatusTrouble = {
        ...trouble,
        place,
        since: same ? earlier.since : timeNow(),
        attempts: same ? earlier.attempts + 1 : 1,
        next_try_at: nextTryAtMs === null ? null : isoTime(nextTryAtMs),
        correlation,
      }
      note(place, 'failed', { ...trouble, correlation, next_try: entry.next_try_at })
      change({ troubles: [...status.troubles.filter((other) => other.place !== place), entry] })
    },
    clear: (place, unresolved) => {
      const was = troubleAt(place)
      if (was === undefined) return
      if (unresolved === undefined)
        note(place, 'succeeded', { code: was.code, text: 'Resolved.', correlation: was.correlation ?? null })
      over(place)
    },
    withdraw: (code, why) => {
      for (const { place, correlation = null } of status.troubles.filter((entry) => entry.code === code)) {
        note(place, 'succeeded', { code, text: why, correlation })
        over(place)
      }
    },
    count,
    end: (outcome) => {
      const said = outcome.kind === 'stopped' ? { code: null, text: null, next: null } : outcome.trouble
      change({ phase: 'stopped', phase_since: timeNow(), outcome: { kind: outcome.kind, ...said } })
      change({ channel: { open: false, since: timeNow(), url: null } })
      note('agent', 'changed', {
        code: outcome.kind,
        text: said.text ?? 'The agent was stopped.',
        next: said.next ?? '',
      })
    },
    now: () => ({ status, figures, events }),
    pressedSince: () => (pressedSince = storage.pressure() ? (pressedSince ?? timeNow()) : null),
    watch: (listener) => {
      changed = listener
    },
  }
}

const begun = (at: string): Recorded['status'] => ({
  version: 1,
  ...ownMark(),
  nudges: takesNudges(),
  agent_version: agentVersion,
  started_at: at,
  written_at: at,
  phase: 'starting',
  phase_since: at,
  node_id: null,
  domain: null,
  profile: null,
  vcluster: null,
  certificate: null,
  channel: { open: false, since: at, url: null },
  troubles: [],
  outcome: null,
})

const channelEvent = (open: boolean, url: string | null): { readonly code: string; readonly text: string } =>
  open
    ? { code: 'channel_open', text: `The channel to ${url} is open.` }
    : { code: 'channel_closed', text: 'The channel is closed.' }
