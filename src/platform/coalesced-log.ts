// A log that cannot fill a disk: a message repeated within a minute is counted and not written, and beyond a number of lines a
// minute only errors are written. The log says how many lines it left out. The lines stay in the order of what happened: what was counted
// is written before the next line that is different, and what is true again after something else was so is no repetition.

import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import type { Timers } from './timers.ts'

/** Where the log is written, if that can become full. */
type LogDisk = {
  /** While true only warnings and worse are written. */
  readonly quiet: () => boolean
  /** Called once for every lost line. */
  readonly dropped: (reason: 'too_many' | 'disk_pressure') => void
}

const roomyDisk: LogDisk = { quiet: () => false, dropped: () => {} }

export type CoalescedLog = { readonly log: Log; /** Says now what was counted. */ flush(): void }

const windowMs = 60_000
/** What comes and goes faster is only counted. */
const newsAfterMs = 1_000
const mostLines = 240
const mostKinds = 256

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
type Line = {
  readonly log: Log
  readonly level: 'info' | 'warn' | 'error'
  readonly fields: object
  readonly message: string
}
/** `line`: the last of its kind. */
type Counted = {
  line: Line
  readonly sinceMs: number
  repeated: number
  /** Which of all lines the last of its kind was. */
  number: number
}

/** `subjects`: fields by which warnings with the same words are distinguished. None may be one that an anonymous caller can choose. */
export const coalesced = (
  { log, clock, timers }: { readonly log: Log; readonly clock: Clock; readonly timers: Timers },
  disk: LogDisk = roomyDisk,
  subjects: readonly string[] = [],
): CoalescedLog => {
  const seen = new Map<string, Counted>()
  let minuteMs = clock.monotonicMs()
  let lines = 0
  let leftOut = 0
  let cancelSweep: (() => void) | null = null
  let numbered = 0
  let lastGood = 0

  const write = ({ log: to, level, fields, message }: Line, more: object = {}): void => {
    lines += 1
    to[level]({ ...fields, ...more }, message)
  }
  const tell = (counted: Counted): void => {
    if (counted.repeated > 0) write(counted.line, { repeated: counted.repeated })
    counted.repeated = 0
  }
  const endMinute = (): void => {
    const left = leftOut
    minuteMs = clock.monotonicMs()
    lines = 0
    leftOut = 0
    if (left > 0) write({ log, level: 'warn', fields: { left_out: left }, message: 'lines were left out of this log' })
  }
  const sweep = (): void => {
    cancelSweep = null
    const nowMs = clock.monotonicMs()
    if (nowMs - minuteMs >= windowMs) endMinute()
    for (const [key, counted] of seen) {
      if (nowMs - counted.sinceMs < windowMs) continue
      seen.delete(key)
      tell(counted)
    }
    if (seen.size > 0 || leftOut > 0) sweepLater()
  }
  const sweepLater = (): void => {
    cancelSweep ??= timers.after(windowMs, sweep, 'background')
  }

  /** Of a warning: something went well since. Of another line: anything happened since. */
  const isNews = ({ line: { level }, sinceMs, number }: Counted): boolean =>
    clock.monotonicMs() - sinceMs >= newsAfterMs && number < (level === 'info' ? numbered : lastGood)

  const take = (line: Line): void => {
    if (clock.monotonicMs() - minuteMs >= windowMs) sweep()
    if (line.level === 'info' && disk.quiet()) return disk.dropped('disk_pressure')
    const key = kindOf(line, subjects)
    const before = seen.get(key)
    const isAgain = before !== undefined && clock.monotonicMs() - before.sinceMs < windowMs && !isNews(before)
    numbered += 1
    if (line.level === 'info') lastGood = numbered
    if (isAgain) {
      before.line = line
      before.repeated += 1
      before.number = numbered
      return
    }
    if (line.level !== 'error' && lines >= mostLines) {
      leftOut += 1
      sweepLater()
      return disk.dropped('too_many')
    }
    for (const counted of seen.values()) if (counted !== before && lines < mostLines) tell(counted)
    if (before !== undefined || seen.size < mostKinds)
      seen.set(key, { line, sinceMs: clock.monotonicMs(), repeated: 0, number: numbered })
    write(line, before === undefined || before.repeated === 0 ? {} : { repeated: before.repeated })
    sweepLater()
  }

  return {
    log: wrapped(log, take),
    flush: () => {
      cancelSweep?.()
      cancelSweep = null
      for (const counted of seen.values()) tell(counted)
      seen.clear()
      if (leftOut > 0) endMinute()
    },
  }
}

/** At level `debug` every line is written, and a fatal line is never dropped. */
const wrapped = (log: Log, take: (line: Line) => void): Log => {
  const through = (level: Level) => (first: unknown, second?: unknown) =>
    typeof first === 'string' ? log[level](first) : log[level](first as object, second as string)
  const counted = (level: Line['level']) => (first: unknown, second?: unknown) => {
    if (!log.isLevelEnabled(level)) return
    const message = typeof first === 'string' ? first : typeof second === 'string' ? second : ''
    take({ log, level, fields: typeof first === 'object' && first !== null ? first : {}, message })
  }
  return {
    trace: through('trace'),
    debug: through('debug'),
    info: counted('info'),
    warn: counted('warn'),
    error: counted('error'),
    fatal: through('fatal'),
    isLevelEnabled: (level) => log.isLevelEnabled(level),
    child: (bindings) => wrapped(log.child(bindings), take),
  }
}

/** Warnings and errors are equal despite different times and figures in them; other lines only when all of it is equal. */
const kindOf = ({ level, fields, message }: Line, subjects: readonly string[]): string =>
  `${level} ${level === 'info' ? JSON.stringify(fields) : wordsOf(fields, ['code', ...subjects])} ${message}`

const wordsOf = (fields: object, names: readonly string[]): string =>
  Object.entries(fields)
    .flatMap(([name, value]) => (names.includes(name) && typeof value === 'string' ? [value.replace(/\d+/g, '0')] : []))
    .join(' ')
