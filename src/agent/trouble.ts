// What is wrong, for people: a code to search for, a sentence, and what to do.

export type Trouble = { readonly code: string; readonly text: string; readonly next: string }

const longestText = 512

/** Bounded, because parts of it come from elsewhere, and on one line, because it ends up in logs and terminals. */
export const trouble = (code: string, text: string, next: string): Trouble => ({
  code: tidy(code, 64),
  text: tidy(text, longestText),
  next: tidy(next, longestText),
})

const tidy = (text: string, limit: number): string =>
  text
    .replace(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, limit)
