// Where the parts of the agent say how they are doing. Written to disk at most once a second; losing it harms nobody.

import type { Clock } from '#platform/clock.ts'
import { isoTime } from '#platform/clock.ts'
import { makeFolder } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import { ownMark } from '#platform/process-mark.ts'
import type { Timers } from '#platform/timers.ts'
import { replaceUnflushed } from '#platform/unflushed-file.ts'
import { agentVersion } from './agent-version.ts'
import type { AgentOutcome } from './outcome.ts'
import { statusPath, type Phase, type Place, type StatusFile, type StatusTrouble } from './status-file.ts'
import type { Trouble } from './trouble.ts'

export type StatusBoard = {
  phase(phase: Phase): void
  /** Who the node is and what it holds; only what is given changes. */
  facts(facts: Partial<Pick<StatusFile, 'node_id' | 'domain' | 'profile' | 'vcluster' | 'certificate'>>): void
  channel(open: boolean, url: string | null): void
  /** Attempts are counted while the same code stays. */
  trouble(place: Place, trouble: Trouble, nextTryAtMs: number | null): void
  clear(place: Place): void
  /** Writes the last word and stops. */
  close(outcome: AgentOutcome): void
}

const writeEveryMs = 1_000

type BoardDeps = { readonly clock: Clock; readonly timers: Timers; readonly log: Log }

export const openStatusBoard = (deps: BoardDeps, stateFolder: string): StatusBoard => {
  const now = (): string => isoTime(deps.clock.nowMs())
  const { pid, birth } = ownMark()
  const started = now()
  let status: StatusFile = {
    version: 1,
    pid,
    birth,
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

  const write = (): void => {
    cancelWrite = null
    writtenAtMs = deps.clock.monotonicMs()
    try {
      makeFolder(stateFolder, 0o700)
      replaceUnflushed(statusPath(stateFolder), JSON.stringify({ ...status, written_at: now() }, null, 1) + '\n', 0o600)
      complained = false
    } catch (error) {
      if (!complained) deps.log.warn({ err: error }, 'the status file cannot be written')
      complained = true
    }
  }
  const change = (patch: Partial<StatusFile>): void => {
    status = { ...status, ...patch }
    const waitMs = Math.max(0, writtenAtMs + writeEveryMs - deps.clock.monotonicMs())
    // Even at once is a turn later: several changes of one turn are one write.
    cancelWrite ??= deps.timers.after(waitMs, write, 'background')
  }
  write()

  return {
    phase: (phase) => {
      if (phase !== status.phase) change({ phase, phase_since: now() })
    },
    facts: change,
    channel: (open, url) => change({ channel: { open, url, since: now() } }),
    trouble: (place, trouble, nextTryAtMs) => {
      const before = status.troubles.find((entry) => entry.place === place)
      const same = before !== undefined && before.code === trouble.code
      const entry: StatusTrouble = {
        ...trouble,
        place,
        since: same ? before.since : now(),
        attempts: same ? before.attempts + 1 : 1,
        next_try_at: nextTryAtMs === null ? null : isoTime(nextTryAtMs),
      }
      change({ troubles: [...status.troubles.filter((other) => other.place !== place), entry] })
    },
    clear: (place) => {
      if (status.troubles.some((entry) => entry.place === place)) {
        change({ troubles: status.troubles.filter((entry) => entry.place !== place) })
      }
    },
    close: (outcome) => {
      const said = outcome.kind === 'stopped' ? { code: null, text: null, next: null } : outcome.trouble
      change({ phase: 'stopped', phase_since: now(), outcome: { kind: outcome.kind, ...said } })
      change({ channel: { open: false, since: now(), url: null } })
      cancelWrite?.()
      write()
    },
  }
}
