// What is wrong, for people: a code to search for, a sentence, and what to do.

import { redactSecrets } from '#platform/log.ts'

export type Trouble = { readonly code: string; readonly text: string; readonly next: string }

const longestText = 512

/** Bounded and without secrets, because parts of it come from elsewhere; on one line, because it ends up in terminals. */
export const trouble = (code: string, text: string, next: string): Trouble => ({
  code: tidy(code, 64),
  text: tidy(text, longestText),
  next: tidy(next, longestText),
})

const tidy = (text: string, limit: number): string =>
  redactSecrets(text)
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, limit)
