// A failure as people read it: a code to search for, a sentence, and the next step.

import type { FailureClass } from '#domain/core/node.ts'
import { classify, type Observed } from '#domain/recovery/failure-class.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'

export type Trouble = {
  readonly code: string
  readonly text: string
  readonly next: string
  /** Its failure class; null if it is none of the nine. */
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

/** Trouble with its class, the evidence for it and the next step, all from what was seen. */
export const observedTrouble = (
  code: string,
  text: string,
  ...observed: readonly [Observed, ...Observed[]]
): Trouble => {
  const verdict = classify(...observed)
  return classified(trouble(code, text, verdict.next), verdict.class, verdict.evidence)
}

const longestValue = 128
const mostEvidence = 8

/** Bounds evidence so that it fits the schemas of records and reports. */
export const boundedEvidence = (evidence: Trouble['evidence'] | undefined): Trouble['evidence'] =>
  Object.fromEntries(
    Object.entries(evidence ?? {})
      .filter(([name]) => /^[a-z0-9_]{1,40}$/.test(name))
      .slice(0, mostEvidence)
      .map(([name, value]) => [name, boundedValue(value)]),
  )

const boundedValue = (value: string | number | null): string | number | null => {
  if (typeof value === 'string') return tidy(value, longestValue)
  return typeof value === 'number' && !Number.isFinite(value) ? null : value
}
