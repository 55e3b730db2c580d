// Where the parts of the agent say how they are doing. Written to disk at most once a second; losing it harms nobody. What
// happened goes into the record too, which is kept.

import { isoTime, type Clock } from '#platform/clock.ts'
import { makeFolder } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import { takesNudges } from '#platform/signals.ts'
import { ownMark } from '#platform/process-mark.ts'
import type { Timers } from '#platform/timers.ts'
import { replaceUnflushed } from '#platform/unflushed-file.ts'
import { agentVersion } from '#agent/core/agent-version.ts'
import type { AgentOutcome } from '#agent/core/outcome.ts'
import { openRecord, type NewEvent, type RecordedEvent } from './record.ts'
import { reportedOf, type ReportedCondition } from './reported-conditions.ts'
import { statusPath, type Phase, type Place, type StatusFile, type StatusTrouble } from './status-file.ts'
import type { AgentStorage } from '#agent/state/storage.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import type { Vitals, VitalSigns } from '#agent/core/vitals.ts'

export type StatusBoard = {
  phase(phase: Phase): void
  /** Who the node is and what it holds; only what is given changes. */
  facts(
    facts: Partial<
      Pick<
        StatusFile,
        'node_id' | 'domain' | 'profile' | 'vcluster' | 'certificate' | 'reports' | 'overlay' | 'wireguard'
      >
    >,
  ): void
  channel(open: boolean, url: string | null): void
  /** Where the identity in use comes from. */
  source(source: VitalSigns['source']): void
  /** Something about the node is not as it was, in a sentence. For the record only. */
  news(place: string, code: string, text: string): void
  /** Something is about to be tried, in a sentence: "renew the certificate". For the record only. */
  attempt(place: Place, text: string): void
  /** It went well: trouble of that place is over. */
  success(place: Place, text: string): void
  /** Attempts are counted while the same code stays. `correlation`: of the episode, as the plane is told. */
  trouble(place: Place, trouble: Trouble, nextTryAtMs: number | null, correlation?: string | null): void
  /** `untold`: nobody tries there any more, which does not mean that it went well. */
  clear(place: Place, untold?: 'untold'): void
  /** It never was so: what was said under that code is taken back at every place. */
  withdraw(code: string, why: string): void
  /** What the node says of itself now. */
  conditions(): readonly ReportedCondition[]
  /** What happened, the newest last. */
  story(): readonly RecordedEvent[]
  /** Writes the last word and stops. */
  close(outcome: AgentOutcome): void
}

const writeEveryMs = 1_000
const pressedWriteEveryMs = 5_000
/** Room for a trouble of every place, so that it can be written over on a full disk. */
const statusBytes = 16 * 1024

type BoardDeps = {
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Log
  readonly vitals: Vitals
  readonly storage: AgentStorage
}

export const openStatusBoard = (deps: BoardDeps, stateFolder: string): StatusBoard => {
  const { vitals, storage } = deps
  const record = openRecord(deps, stateFolder)
  const now = (): string => isoTime(deps.clock.nowMs())
  const { pid, birth } = ownMark()
  const started = now()
  let status: StatusFile = {
    version: 1,
    pid,
    birth,
    nudges: takesNudges(),
    agent_version: agentVersion,
    started_at: started,
    written_at: started,
    phase: 'starting',
    phase_since: started,
    node_id: null,
    domain: null,
    profile: null,
    vcluster: null,
    certificate: null,
    channel: { open: false, since: started, url: null },
    troubles: [],
    outcome: null,
  }
  let cancelWrite: (() => void) | null = null
  let writtenAtMs = -Infinity
  let complained = false
  let pressedSince: string | null = null

  const write = (): void => {
    cancelWrite = null
    writtenAtMs = deps.clock.monotonicMs()
    // Whoever reads how it is now finds in the record how it came to be so.
    record.flush()
    try {
      makeFolder(stateFolder, 0o700)
      const content = JSON.stringify({ ...status, written_at: now(), plane: planeOf(vitals.signs()) }, null, 1)
      replaceUnflushed(statusPath(stateFolder), content, 0o600, statusBytes)
      complained = false
    } catch (error) {
      vitals.dropped('status', 'write_failed', 1)
      if (!complained) deps.log.warn({ err: error }, 'the status file cannot be written')
      complained = true
    }
  }
  const change = (patch: Partial<StatusFile>): void => {
    status = { ...status, ...patch }
    const pressed = storage.pressure()
    if (pressed && cancelWrite !== null) vitals.dropped('status', 'disk_pressure', 1)
    const everyMs = pressed ? pressedWriteEveryMs : writeEveryMs
    const waitMs = Math.max(0, writtenAtMs + everyMs - deps.clock.monotonicMs())
    // Even at once is a turn later: several changes of one turn are one write.
    cancelWrite ??= deps.timers.after(waitMs, write, 'background')
  }
  const note = (place: string, event: NewEvent['event'], what: Partial<NewEvent> & { readonly text: string }): void =>
    record.note({
      code: '',
      next: '',
      class: null,
      correlation: null,
      next_try: null,
      evidence: {},
      ...what,
      place,
      event,
    })
  const troubleAt = (place: Place): StatusTrouble | undefined => status.troubles.find((entry) => entry.place === place)
  const over = (place: Place): void => change({ troubles: status.troubles.filter((entry) => entry.place !== place) })
  write()
  note('agent', 'changed', { code: 'started', text: 'The agent was started.' })

  return {
    phase: (phase) => {
      if (phase !== status.phase) change({ phase, phase_since: now() })
    },
    facts: change,
    channel: (open, url) => {
      if (open !== status.channel.open) note('channel', 'changed', channelEvent(open, url))
      change({ channel: { open, url, since: now() } })
    },
    source: (source) => {
      if (source !== vitals.signs().source)
        note('agent', 'changed', { code: 'source', text: `Its identity comes from ${source} now.` })
      vitals.source(source)
      change({ source })
    },
    news: (place, code, text) => note(place, 'changed', { code, text }),
    attempt: (place, text) => note(place, 'tried', { text }),
    success: (place, text) => {
      note(place, 'succeeded', { text, correlation: troubleAt(place)?.correlation ?? null })
      over(place)
    },
    trouble: (place, trouble, nextTryAtMs, correlation = null) => {
      const before = troubleAt(place)
      const same = before !== undefined && before.code === trouble.code
      const entry: StatusTrouble = {
        ...trouble,
        place,
        since: same ? before.since : now(),
        attempts: same ? before.attempts + 1 : 1,
        next_try_at: nextTryAtMs === null ? null : isoTime(nextTryAtMs),
        correlation,
      }
      note(place, 'failed', { ...trouble, correlation, next_try: entry.next_try_at })
      change({ troubles: [...status.troubles.filter((other) => other.place !== place), entry] })
    },
    clear: (place, untold) => {
      const was = troubleAt(place)
      if (was === undefined) return
      if (untold === undefined)
        note(place, 'succeeded', { code: was.code, text: 'That is over.', correlation: was.correlation ?? null })
      over(place)
    },
    withdraw: (code, why) => {
      for (const { place, correlation = null } of status.troubles.filter((entry) => entry.code === code)) {
        note(place, 'succeeded', { code, text: why, correlation })
        over(place)
      }
    },
    conditions: () => {
      pressedSince = storage.pressure() ? (pressedSince ?? now()) : null
      return reportedOf(status.troubles, pressedSince, storage.freeBytes())
    },
    story: () => record.events(),
    close: (outcome) => {
      const said = outcome.kind === 'stopped' ? { code: null, text: null, next: null } : outcome.trouble
      change({ phase: 'stopped', phase_since: now(), outcome: { kind: outcome.kind, ...said } })
      change({ channel: { open: false, since: now(), url: null } })
      note('agent', 'changed', {
        code: outcome.kind,
        text: said.text ?? 'The agent was stopped.',
        next: said.next ?? '',
      })
      cancelWrite?.()
      write()
    },
  }
}

const planeOf = ({ lastExchangeMs, clockSkewMs }: VitalSigns): NonNullable<StatusFile['plane']> => ({
  last_exchange: lastExchangeMs === null ? null : isoTime(lastExchangeMs),
  clock_behind_ms: clockSkewMs,
})

const channelEvent = (open: boolean, url: string | null): { readonly code: string; readonly text: string } =>
  open
    ? { code: 'channel_open', text: `The channel to ${url} is open.` }
    : { code: 'channel_closed', text: 'The channel is closed.' }
