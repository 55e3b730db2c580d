// The one way a command ends early. Thrown by what finds out, rendered once by run-cli.ts.

import type { Hints } from './as-called.ts'
import { exitCodes, type ExitCode } from './exit-codes.ts'
import { printable } from './printable.ts'

/** The values of words in capitals in a hint: { ID: 'gpu-001' }. */
export type About = Readonly<Record<string, string>>

export class Failure extends Error {
  readonly exit: ExitCode
  readonly code: string
  readonly detail: string | null
  readonly next: string | null
  readonly retryAfterMs: number | null
  /** Of the request, where one is at fault. */
  readonly field: string | null

  constructor(what: {
    exit: ExitCode
    code: string
    sentence: string
    detail?: string | null
    next?: string | null
    retryAfterMs?: number | null
    field?: string | null
  }) {
    super(what.sentence)
    this.exit = what.exit
    this.code = what.code
    this.detail = what.detail ?? null
    this.next = what.next ?? null
    this.retryAfterMs = what.retryAfterMs ?? null
    this.field = what.field ?? null
  }
}

export const usageFailure = (sentence: string, next: string | null = null): Failure =>
  new Failure({ exit: exitCodes.usage, code: 'USAGE', sentence, next })

/** A value that a shell would take apart is not put into a command meant for pasting. */
const pasteable = /^[A-Za-z0-9._:@/+-]+$/

export const fillIn = (hint: string, about: About): string =>
  Object.entries(about).reduce(
    (text, [word, value]) => (pasteable.test(value) ? text.replace(new RegExp(`\\b${word}\\b`, 'g'), value) : text),
    hint,
  )

export const renderFailure = (failure: Failure, { asCalled }: Hints): string[] => {
  const lines = [`error ${printable(failure.code)}: ${printable(failure.message)}`]
  if (failure.detail !== null) lines.push(`detail: ${printable(asCalled(failure.detail))}`)
  if (failure.retryAfterMs !== null) lines.push(`retry: in ${Math.ceil(failure.retryAfterMs / 1000)}s`)
  if (failure.next !== null) lines.push(`next: ${printable(asCalled(failure.next))}`)
  return lines
}

export const failureBody = (failure: Failure, { asCalled }: Hints): object => ({
  error: {
    code: failure.code,
    message: failure.message,
    detail: failure.detail === null ? null : asCalled(failure.detail),
    next: failure.next === null ? null : asCalled(failure.next),
    retry_after_ms: failure.retryAfterMs,
    ...(failure.field === null ? {} : { field: failure.field }),
    exit_code: failure.exit,
  },
})
