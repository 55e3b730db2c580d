// A long answer, sent piece by piece: the next piece is read when the kernel has the one before. One piece is all that is in memory
// for a reader that does not read, and a reader that is too slow is given up: it would keep a place that others wait for.

import type { Clock } from './clock.ts'
import type { HttpResponse } from './http-server.ts'
import type { Timers } from './timers.ts'

export const sendOutcomes = ['sent', 'slow', 'gone', 'failed'] as const
/**
 * `slow`: the reader took less than the lowest rate. `gone`: it hung up. `failed`: the bytes could not be read, or were fewer than
 * announced.
 */
export type SendOutcome = (typeof sendOutcomes)[number]

export type ByteSource = {
  read(into: Buffer, from: number): Promise<number>
  /** Waits until so many more bytes may be sent. */
  pace(bytes: number): Promise<void>
}

type SendParts = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly timers: Pick<Timers, 'after'> }

const pieceBytes = 128 * 1024
/** What a reader has to take, counted only while it is waited for. */
export const lowestBytesPerSecond = 64 * 1024
/** For which a reader may take nothing; it grows with what was taken, and never beyond this. */
export const mostSilentMs = 15_000

/** From `from` to the byte before `end`. The headers have been written; what ends the answer is left to the caller. */
export const sendBytes = async (
  { clock, timers }: SendParts,
  response: HttpResponse,
  source: ByteSource,
  from: number,
  end: number,
): Promise<SendOutcome> => {
  const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, end - from))
  let creditMs = mostSilentMs
  for (let at = from; at < end;) {
    await source.pace(Math.min(piece.length, end - at))
    if (response.destroyed || response.socket === null) return 'gone'
    const count = await source.read(piece.subarray(0, Math.min(piece.length, end - at)), at)
    if (count === 0) return 'failed'
    const startedMs = clock.monotonicMs()
    const earnedMs = (count * 1000) / lowestBytesPerSecond
    const taken = await handOver(timers, response, piece.subarray(0, count), creditMs + earnedMs)
    if (taken !== 'taken') return taken
    creditMs = Math.min(mostSilentMs, creditMs + earnedMs - (clock.monotonicMs() - startedMs))
    at += count
  }
  return 'sent'
}

/** Ends when the kernel has all of it; what is written may be overwritten then. */
const handOver = (
  timers: SendParts['timers'],
  response: HttpResponse,
  piece: Buffer,
  withinMs: number,
): Promise<'taken' | 'slow' | 'gone'> =>
  new Promise((resolve) => {
    if (response.destroyed || response.closed) return resolve('gone')
    const done = (outcome: 'taken' | 'slow' | 'gone'): void => {
      cancel()
      response.off('close', closed)
      resolve(outcome)
    }
    const closed = (): void => done('gone')
    const cancel = timers.after(withinMs, () => done('slow'), 'background')
    response.once('close', closed)
    response.write(piece, (error) => done(error === null || error === undefined ? 'taken' : 'gone'))
  })
