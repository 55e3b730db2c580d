// Signatures that another thread checks. What is asked for while this one is busy goes to it together: one hand-over for each
// check costs as much as what it takes off the main thread is worth.

import type { Worker } from 'node:worker_threads'
import { startOwnThread } from './own-thread.ts'
import { openThreadOutbox } from './thread-outbox.ts'

export type SignatureCheck = {
  /** Null: the algorithm of the key takes the data itself. */
  readonly digest: string | null
  /** SubjectPublicKeyInfo, DER. */
  readonly key: Uint8Array
  readonly data: Uint8Array
  readonly signature: Uint8Array
}

export type SignatureChecks = {
  /**
   * False for a signature that does not verify, and for a key that cannot be imported. Rejects where that could not be found out, and
   * after `close`. The bytes are copied before this returns.
   */
  verify(check: SignatureCheck): Promise<boolean>
  /** What is not answered yet rejects. */
  close(): Promise<void>
}

/** Bytes travel as text of one byte a character: a string is copied faster than a buffer is handed over. */
export type SentCheck = readonly [digest: string | null, key: string, data: string, signature: string]

/** A message is a list of checks; the answer to it is a list of these, in the same order. */
export type CheckAnswer = boolean | { readonly fault: string }

/** So that the first of many is answered while the thread works on the others. */
const mostInMessage = 16

type Outstanding = {
  readonly sent: SentCheck
  resolve(isValid: boolean): void
  reject(error: Error): void
}

/** The thread is started with the first check, and again after it has failed. It keeps the process alive while a check is outstanding. */
export const openSignatureChecks = (): SignatureChecks => {
  let thread: CheckThread | null = null
  let isClosed = false

  const send = (checks: readonly Outstanding[]): void => {
    if (isClosed) return rejectAll(checks, closed())
    try {
      thread ??= startThread((ended) => {
        if (thread === ended) thread = null
      })
      thread.check(checks)
    } catch (cause) {
      rejectAll(checks, new Error('signatures could not be handed to their thread', { cause }))
    }
  }
  const ask = openThreadOutbox<Outstanding>((checks) => {
    for (let from = 0; from < checks.length; from += mostInMessage) send(checks.slice(from, from + mostInMessage))
  })

  return {
    verify({ digest, key, data, signature }) {
      if (isClosed) return Promise.reject(closed())
      const sent: SentCheck = [digest, textOf(key), textOf(data), textOf(signature)]
      return new Promise((resolve, reject) => ask({ sent, resolve, reject }))
    },
    async close() {
      isClosed = true
      await thread?.end(closed())
    },
  }
}

type CheckThread = {
  check(checks: readonly Outstanding[]): void
  end(why: Error): Promise<void>
}

const startThread = (onEnded: (thread: CheckThread) => void): CheckThread => {
  const worker: Worker = startOwnThread('signature-thread', 'signatures', null)
  worker.unref()
  /** By message, in the order in which they are answered. */
  const outstanding: (readonly Outstanding[])[] = []
  const rejectOutstanding = (why: Error): void => {
    onEnded(thread)
    for (const checks of outstanding.splice(0)) rejectAll(checks, why)
  }
  const thread: CheckThread = {
    check(checks) {
      worker.postMessage(checks.map(({ sent }) => sent))
      if (outstanding.push(checks) === 1) worker.ref()
    },
    async end(why) {
      rejectOutstanding(why)
      await worker.terminate()
    },
  }
  worker.on('message', (answers: readonly CheckAnswer[]) => {
    const checks = outstanding.shift()
    // The thread is being ended, and keeps the process until it has: `unref` would undo that.
    if (checks === undefined) return
    if (outstanding.length === 0) worker.unref()
    for (const [index, check] of checks.entries()) settle(check, answers[index])
  })
  worker.on('error', (cause) => rejectOutstanding(new Error('the thread that checks signatures has failed', { cause })))
  worker.on('exit', (code) => rejectOutstanding(new Error(`the thread that checks signatures ended with ${code}`)))
  // Nothing after it could be told apart.
  worker.on('messageerror', (cause) => {
    void thread.end(new Error('an answer of the thread that checks signatures could not be read', { cause }))
  })
  return thread
}

/** Anything but an answer is a fault, and never a proof. */
const settle = ({ resolve, reject }: Outstanding, answer: CheckAnswer | undefined): void => {
  if (typeof answer === 'boolean') return resolve(answer)
  reject(new Error(`a signature could not be checked: ${answer?.fault ?? 'it was not answered'}`))
}

const rejectAll = (checks: readonly Outstanding[], why: Error): void => checks.forEach(({ reject }) => reject(why))

const closed = (): Error => new Error('signatures are checked no more: the process is stopping')

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
