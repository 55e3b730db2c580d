// What happened to this agent, in a file of fixed size: the causal chain for `muster agent explain`, which has to be there
// after a crash, on a full disk and without a network. Equal events are one, counted. No secrets.

import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { failureClasses } from '#domain/recovery/failure-class.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { makeFolder } from '#platform/files.ts'
import { openSlottedFile, readSlottedFile } from '#platform/slotted-file.ts'
import type { Timers } from '#platform/timers.ts'
import { boundedEvidence } from './reported-conditions.ts'
import type { AgentStorage } from '#agent/state/storage.ts'
import { tidy } from '#agent/core/trouble.ts'
import type { Vitals } from '#agent/core/vitals.ts'

const orNull = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const time = Type.String({ maxLength: 32 })
const short = Type.String({ maxLength: 64 })
const text = Type.String({ maxLength: 512 })

export const RecordedEvent = Type.Object({
  first: time,
  /** The last time it happened. */
  at: time,
  place: short,
  event: Type.Union([
    Type.Literal('failed'),
    Type.Literal('tried'),
    Type.Literal('succeeded'),
    Type.Literal('changed'),
  ]),
  class: orNull(Type.Enum([...failureClasses])),
  code: short,
  text,
  next: text,
  times: Type.Integer({ minimum: 1 }),
  correlation: orNull(short),
  next_try: orNull(time),
  evidence: Type.Record(short, Type.Union([Type.String({ maxLength: 128 }), Type.Number(), Type.Null()])),
})
export type RecordedEvent = Static<typeof RecordedEvent>

export type NewEvent = Omit<RecordedEvent, 'first' | 'at' | 'times'>

export type LocalRecord = {
  note(event: NewEvent): void
  /** The newest last. */
  events(): readonly RecordedEvent[]
  /** Writes what is not written yet. */
  flush(): void
}

const mostEvents = 64
const slotBytes = 32 * 1024
const writeEveryMs = 1_000

export const recordPath = (stateFolder: string): string => path.join(stateFolder, 'record')

type RecordDeps = {
  readonly clock: Clock
  readonly timers: Timers
  readonly storage: Pick<AgentStorage, 'pressure' | 'diagnosticWrite'>
  readonly vitals: Pick<Vitals, 'dropped'>
}

export const openRecord = (deps: RecordDeps, stateFolder: string): LocalRecord => {
  const { clock, timers, storage, vitals } = deps
  let events = readIfAllowed(stateFolder)
  let file: ReturnType<typeof openSlottedFile> | null = null
  let cancelWrite: (() => void) | null = null
  let writtenAtMs = -Infinity

  const write = (): void => {
    cancelWrite = null
    writtenAtMs = clock.monotonicMs()
    try {
      makeFolder(stateFolder, 0o700)
      file ??= openSlottedFile(recordPath(stateFolder), slotBytes)
      file.write(fitting(events, file.longest))
      storage.diagnosticWrite(null)
    } catch (error) {
      storage.diagnosticWrite(error)
    }
  }
  return {
    note: (event) => {
      if (event.event === 'tried' && storage.pressure()) return vitals.dropped('record', 'disk_pressure', 1)
      events = withEvent(events, event, isoTime(clock.nowMs()))
      const waitMs = Math.max(0, writtenAtMs + writeEveryMs - clock.monotonicMs())
      cancelWrite ??= timers.after(waitMs, write, 'background')
    },
    events: () => events,
    flush: () => {
      if (cancelWrite === null) return
      cancelWrite()
      write()
    },
  }
}

/** Pure. The same again, since its place last went well, is counted and moves to the end. */
export const withEvent = (events: readonly RecordedEvent[], event: NewEvent, at: string): readonly RecordedEvent[] => {
  const wentWell = events.findLastIndex(({ place, event: what }) => place === event.place && what === 'succeeded')
  const same = events.find(
    (other, index) =>
      (index > wentWell || event.event === 'succeeded') &&
      other.place === event.place &&
      other.event === event.event &&
      other.code === event.code &&
      (event.event === 'failed' || other.text === event.text),
  )
  const entry: RecordedEvent = {
    ...event,
    code: tidy(event.code, 64),
    text: tidy(event.text, 512),
    next: tidy(event.next, 512),
    correlation: event.correlation === null ? null : tidy(event.correlation, 64),
    evidence: boundedEvidence(event.evidence),
    first: same?.first ?? at,
    at,
    times: (same?.times ?? 0) + 1,
  }
  return [...events.filter((other) => other !== same), entry].slice(-mostEvents)
}

/** The oldest are left out until the rest fits. */
const fitting = (events: readonly RecordedEvent[], longest: number): string => {
  const content = JSON.stringify({ version: 1, events })
  return Buffer.byteLength(content) <= longest || events.length === 0 ? content : fitting(events.slice(1), longest)
}

const Stored = Type.Object({ version: Type.Literal(1), events: Type.Array(RecordedEvent, { maxItems: mostEvents }) })

/** None when there is no record, or a damaged one. Throws when it may not be read. */
export const readRecord = (stateFolder: string): readonly RecordedEvent[] => {
  const content = readSlottedFile(recordPath(stateFolder), slotBytes)
  try {
    const value: unknown = JSON.parse(content ?? 'null')
    return Value.Check(Stored, value) ? value.events : []
  } catch {
    return []
  }
}

const readIfAllowed = (stateFolder: string): readonly RecordedEvent[] => {
  try {
    return readRecord(stateFolder)
  } catch {
    return []
  }
}
