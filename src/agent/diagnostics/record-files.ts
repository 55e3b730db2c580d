// The record on disk. `status.json` is the status of the agent and may be lost. `record` holds its events in a file of fixed
// size, because they have to be there after a crash, on a full disk and without a network.

import * as path from 'node:path'
import { Type } from 'typebox'
import { isoTime, type Clock } from '#platform/clock.ts'
import { makeFolder } from '#platform/files.ts'
import { openSlottedFile, readSlottedFile } from '#platform/slotted-file.ts'
import type { Timers } from '#platform/timers.ts'
import { replaceUnflushed } from '#platform/unflushed-file.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { AgentCore } from '#agent/core/agent-parts.ts'
import type { AgentStorage } from '#agent/state/storage.ts'
import { mostEvents, RecordedEvent } from './events.ts'
import type { AgentRecord, Recorded } from './record.ts'
import { statusPath, type StatusFile } from './status-file.ts'

const writeEveryMs = 1_000
const pressedStatusEveryMs = 5_000
const slotBytes = 32 * 1024
/** Room for a trouble of every place, so that it can be written over on a full disk. */
const statusBytes = 16 * 1024

export const recordPath = (stateFolder: string): string => path.join(stateFolder, 'record')

/** Writes both from now on, each at most once a second; `close` writes what is not written yet. */
export const keepRecordFiles = (
  { clock, timers, log }: Pick<AgentCore, 'clock' | 'timers' | 'log'>,
  stateFolder: string,
  record: AgentRecord,
  storage: Pick<AgentStorage, 'pressure' | 'diagnosticWrite'>,
): { close(): void } => {
  const events = writesLater(clock, timers, () => writeEvents())
  const status = writesLater(clock, timers, () => writeStatus())
  let file: ReturnType<typeof openSlottedFile> | null = null
  let complained = false

  const writeEvents = (): void => {
    try {
      makeFolder(stateFolder, 0o700)
      file ??= openSlottedFile(recordPath(stateFolder), slotBytes)
      file.write(fitting(record.now().events, file.longest))
      storage.diagnosticWrite(null)
    } catch (error) {
      storage.diagnosticWrite(error)
    }
  }
  const writeStatus = (): void => {
    // A reader of the status finds in the record how it came to be so.
    if (events.isPending()) events.write()
    try {
      makeFolder(stateFolder, 0o700)
      const content = JSON.stringify(statusIn(record.now(), isoTime(clock.nowMs())), null, 1)
      replaceUnflushed(statusPath(stateFolder), content, 0o600, statusBytes)
      complained = false
    } catch (error) {
      record.count({ kind: 'dropped', source: 'status', reason: 'write_failed', count: 1 })
      if (!complained) log.warn({ err: error }, 'the status file cannot be written')
      complained = true
    }
  }
  status.write()
  record.watch((what) => {
    if (what === 'events') return events.due(writeEveryMs)
    const pressed = storage.pressure()
    if (pressed && status.isPending())
      record.count({ kind: 'dropped', source: 'status', reason: 'disk_pressure', count: 1 })
    status.due(pressed ? pressedStatusEveryMs : writeEveryMs)
  })
  return { close: status.write }
}

type LaterWrite = {
  /** Within that time of the last write. Even at once is a turn later: several changes of one turn are one write. */
  due(everyMs: number): void
  isPending(): boolean
  /** Now. */
  write(): void
}

const writesLater = (clock: Clock, timers: Timers, run: () => void): LaterWrite => {
  let cancel: (() => void) | null = null
  let writtenAtMs = -Infinity
  const write = (): void => {
    cancel?.()
    cancel = null
    writtenAtMs = clock.monotonicMs()
    run()
  }
  return {
    due: (everyMs) => {
      const waitMs = Math.max(0, writtenAtMs + everyMs - clock.monotonicMs())
      cancel ??= timers.after(waitMs, write, 'background')
    },
    isPending: () => cancel !== null,
    write,
  }
}

/** The content of the status file. */
export const statusIn = ({ status, figures }: Recorded, writtenAt: string): StatusFile => ({
  ...status,
  written_at: writtenAt,
  plane: {
    last_exchange: figures.lastExchangeMs === null ? null : isoTime(figures.lastExchangeMs),
    clock_behind_ms: figures.clockSkewMs,
  },
})

/** The oldest are left out until the rest fits. */
const fitting = (events: readonly RecordedEvent[], longest: number): string => {
  const content = JSON.stringify({ version: 1, events })
  return Buffer.byteLength(content) <= longest || events.length === 0 ? content : fitting(events.slice(1), longest)
}

const Stored = Type.Object({ version: Type.Literal(1), events: Type.Array(RecordedEvent, { maxItems: mostEvents }) })

/** The events; none when there is no record, or a damaged one. Throws when it may not be read. */
export const readRecord = (stateFolder: string): readonly RecordedEvent[] => {
  const content = readSlottedFile(recordPath(stateFolder), slotBytes)
  try {
    const value: unknown = JSON.parse(content ?? 'null')
    return matchesSchema(Stored, value) ? value.events : []
  } catch {
    return []
  }
}
