// Which tasks this host has begun, and how they ended: a file for each, durable before anything is started. An id is given up only
// when its task cannot be believed any more. A file that is damaged still stands for its id.

import * as path from 'node:path'
import { Type } from 'typebox'
import { allocateFile, incompressible } from '#platform/disk-space.ts'
import { changedMs, errno, removeFile, replaceFile } from '#platform/files.ts'
import { createFile, namesIn } from '#platform/folder.ts'
import { pathExists } from '#platform/paths.ts'
import type { ProcessMark } from '#platform/process-mark.ts'
import { readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { matchesSchema, recordOf } from '#platform/json-schema.ts'
import { orNull } from '#wire/core/shapes.ts'
import { longestTaskEnvelope, taskIdShape, taskStatementLifeMs } from '#wire/core/task-statements.ts'
import { toleranceMs } from './judge-statement.ts'
import { HostResult, refuseTask, type TaskRefusal } from './task-verbs.ts'

export type TaskRecord = {
  readonly id: string
  readonly type: string
  /** The task signer that signed it. */
  readonly key: string
  readonly expires_ms: number
  readonly begun_ms: number
  /** How often it was begun. */
  readonly attempts: number
  /** The helper that began it last. */
  readonly by: ProcessMark
  /** Of the boot in which it was begun; null: the system does not say. */
  readonly boot: string | null
  /** Until it has ended: a type that may be repeated is begun again with them. */
  readonly parameters: Readonly<Record<string, unknown>> | null
  readonly result: HostResult | null
  /** The plane has its result. */
  readonly forgotten: boolean
}

const StoredRecord = Type.Object({
  version: Type.Literal(1),
  id: Type.String({ pattern: taskIdShape }),
  type: Type.String(),
  key: Type.String(),
  expires_ms: Type.Number(),
  begun_ms: Type.Number(),
  attempts: Type.Integer(),
  by: Type.Object({ pid: Type.Integer(), birth: orNull(Type.String()) }),
  boot: orNull(Type.String()),
  parameters: orNull(recordOf(Type.String(), Type.Unknown())),
  result: orNull(HostResult),
  forgotten: Type.Boolean(),
})

const idShape = new RegExp(taskIdShape)

/** Of one record: its parameters or its result, with every character escaped. */
const longestRecord = 4 * longestTaskEnvelope + 64 * 1024
/** Tasks come slower than this. More are refused: an id must not be given up before its time. */
const mostRemembered = 10_000
/** Results that the plane has not got. */
const mostKept = 64
/** Room that is kept back for results and for a cleanup, which are written when the disk is full. */
const spareBytes = 256 * 1024

/** What is held in memory of each: `result` only of what a full disk did not take. */
type Entry = {
  readonly record: Omit<TaskRecord, 'result' | 'parameters'>
  readonly isEnded: boolean
  readonly unwritten: HostResult | null
}

export type TaskMemory = {
  isSeen(id: string): boolean
  /** Whether its result is still here, or it runs. */
  isListed(id: string): boolean
  /** Durable when it returns. `known`: it was begun already, by whichever helper. Throws what the disk throws. */
  begin(record: TaskRecord, room: 'as-it-is' | 'spare'): 'begun' | 'known' | TaskRefusal
  /** Once more, by this helper. Durable when it returns; false: the disk does not take it. */
  beginAgain(record: TaskRecord, by: ProcessMark): boolean
  /** Never throws: what the disk does not take, full or gone, is kept in memory, and written later. */
  end(id: string, result: HostResult): void
  forget(id: string): void
  /** Those that have no result, with all that was written of them. */
  begun(): readonly TaskRecord[]
  /** Those that were not forgotten, the oldest first. */
  listed(): readonly { readonly id: string; readonly type: string; readonly isEnded: boolean }[]
  result(id: string): HostResult | null
  /** Gives up the room that is kept back; it is taken again when there is some. */
  freeSpare(): void
  /** Those that were forgotten and whose time is over by `nowMs` are removed. `note` is called before: the latest expiry among them is never believed again. */
  sweep(nowMs: number, note: (expiresMs: number) => void): void
}

/** `nowMs`: no earlier than anything that is known to be over. */
export const openTaskMemory = (folder: string, trust: Trust, nowMs: number): TaskMemory => {
  const entries = new Map<string, Entry>()
  const fileOf = (id: string): string => path.join(folder, `${id}.json`)
  const spare = path.join(folder, 'spare')

  const read = (id: string): TaskRecord | null => {
    const found = readTrustedFile(fileOf(id), trust, longestRecord)
    return 'fault' in found ? null : recordIn(found.text, id)
  }
  const hold = ({ parameters: _parameters, result, ...record }: TaskRecord, unwritten: HostResult | null): void =>
    void entries.set(record.id, { record, isEnded: result !== null || unwritten !== null, unwritten })
  const keepSpare = (): void => {
    try {
      if (!pathExists(spare)) allocateFile(spare, incompressible(spareBytes))
    } catch (error) {
      if (!isFull(error)) throw error
    }
  }
  const withSpare = <T>(write: () => T): T => {
    try {
      return write()
    } catch (error) {
      if (!isFull(error) || !pathExists(spare)) throw error
      removeFile(spare)
      return write()
    }
  }
  const replace = (record: TaskRecord): void => withSpare(() => replaceFile(fileOf(record.id), textOf(record), 0o600))
  /** False: the disk does not take it. */
  const tried = (write: () => void): boolean => {
    try {
      write()
      return true
    } catch (error) {
      // Full, read-only, or not there any more: what the system says of it must not end the helper.
      if (errno(error) === null) throw error
      return false
    }
  }
  const inTime = (): readonly Entry[] => [...entries.values()].sort((a, b) => a.record.begun_ms - b.record.begun_ms)
  const kept = (): readonly Entry[] => inTime().filter(({ record }) => !record.forgotten)
  const resultOf = (id: string): HostResult | null => entries.get(id)?.unwritten ?? read(id)?.result ?? null
  const writeLate = (): void => {
    for (const { record, unwritten } of entries.values()) {
      if (unwritten === null) continue
      const whole = { ...record, parameters: null, result: unwritten }
      if (tried(() => replace(whole))) hold(whole, null)
    }
  }

  for (const name of namesIn(folder)) {
    const id = name.slice(0, -'.json'.length)
    if (!name.endsWith('.json') || !idShape.test(id)) continue
    const record = read(id)
    // The clock may be behind now, and may have been ahead then: the later of them ends later.
    if (record === null) hold(damaged(id, Math.max(nowMs, changedMs(fileOf(id)))), interrupted)
    else hold(record, null)
  }
  keepSpare()

  return {
    isSeen: (id) => entries.has(id),
    isListed: (id) => entries.get(id)?.record.forgotten === false,
    begin: (record, room) => {
      if (entries.has(record.id)) return 'known'
      if (entries.size >= mostRemembered)
        return refuseTask('HELPER_BUSY', `This host remembers ${mostRemembered} tasks that have not expired`)
      if (kept().length >= mostKept)
        return refuseTask('HELPER_BUSY', `This host keeps ${mostKept} results that the plane has not got`)
      const create = (): 'created' | 'exists' => createFile(fileOf(record.id), textOf(record), 0o600)
      const outcome = room === 'spare' ? withSpare(create) : create()
      // Of another helper: how it ends is not seen here, so it is not listed as one that runs.
      if (outcome === 'exists') return 'known'
      hold(record, null)
      return 'begun'
    },
    beginAgain: (before, by) => {
      const record = { ...before, by, attempts: before.attempts + 1 }
      if (!tried(() => replace(record))) return false
      hold(record, null)
      return true
    },
    end: (id, result) => {
      const before = entries.get(id)
      if (before === undefined || before.isEnded) return
      const record = { ...before.record, parameters: null, result }
      const isWritten = tried(() => replace(record))
      hold(record, isWritten ? null : result)
    },
    forget: (id) => {
      const before = entries.get(id)
      if (before === undefined || !before.isEnded || before.record.forgotten) return
      // Without its output: the result is the plane's from here on.
      const result = { ...emptyResult, code: resultOf(id)?.code ?? null }
      const record = { ...before.record, forgotten: true, parameters: null, result }
      hold(record, tried(() => replace(record)) ? null : result)
    },
    begun: () =>
      inTime()
        .filter(({ isEnded }) => !isEnded)
        .flatMap(({ record }) => read(record.id) ?? []),
    listed: () => kept().map(({ record: { id, type }, isEnded }) => ({ id, type, isEnded })),
    result: resultOf,
    freeSpare: () => removeFile(spare),
    sweep: (sweepMs, note) => {
      writeLate()
      // A result that the plane has not got stays, however late it is by a clock that may be wrong.
      const over = inTime().filter(
        ({ record, isEnded }) => isEnded && record.forgotten && record.expires_ms + toleranceMs <= sweepMs,
      )
      if (over.length > 0) note(Math.max(...over.map(({ record }) => record.expires_ms)))
      for (const { record } of over) {
        removeFile(fileOf(record.id))
        entries.delete(record.id)
      }
      keepSpare()
    },
  }
}

export const emptyResult: HostResult = {
  code: null,
  exit_code: null,
  detail: null,
  output: null,
  started_at_ms: null,
  evidence: null,
}

export const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(errno(error) ?? '')

const textOf = (record: TaskRecord): string => JSON.stringify({ version: 1, ...record }) + '\n'

const recordIn = (text: string, id: string): TaskRecord | null => {
  try {
    const value: unknown = JSON.parse(text)
    return matchesSchema(StoredRecord, value) && value.id === id ? value : null
  } catch {
    return null
  }
}

const interrupted: HostResult = {
  ...emptyResult,
  code: 'INTERRUPTED',
  detail: 'What this host remembered of the task is damaged',
}

/** Whatever it was, it expires within a day of its last change, which was no later than `nowMs`. */
const damaged = (id: string, nowMs: number): TaskRecord => ({
  id,
  type: 'unknown',
  key: '',
  attempts: 1,
  expires_ms: nowMs + taskStatementLifeMs,
  begun_ms: nowMs,
  by: { pid: 0, birth: null },
  boot: null,
  parameters: null,
  result: interrupted,
  forgotten: false,
})
