// What is wrong, for people: a code to search for, a sentence, and what to do.

import type { FailureClass } from '#domain/recovery/failure-class.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'

export type Trouble = {
  readonly code: string
  readonly text: string
  readonly next: string
  /** What it is classified as; null for what is none of the nine. */
  readonly class: FailureClass | null
  /** Bounded facts that support it. */
  readonly evidence: Readonly<Record<string, string | number | null>>
}

const longestText = 512

/** Bounded and without secrets, because parts of it come from elsewhere; on one line, because it ends up in terminals. */
export const trouble = (code: string, text: string, next: string): Trouble => ({
  code: tidy(code, 64),
  text: tidy(text, longestText),
  next: tidy(next, longestText),
  class: null,
  evidence: {},
})

export const classified = (what: Trouble, failureClass: FailureClass, evidence: Trouble['evidence'] = {}): Trouble => ({
  ...what,
  class: failureClass,
  evidence,
})

export const tidy = (text: string, limit: number): string =>
  redactSecrets(text)
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, limit)
