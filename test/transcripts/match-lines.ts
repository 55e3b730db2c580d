// Whether what a command said is what a transcript expects.

/** Text stands for itself; `{{...}}` is a regular expression. */
const lineShape = (expected: string): RegExp => {
  const parts = expected.split(/\{\{(.*?)\}\}(?!\})/)
  const shapes = parts.map((part, at) => (at % 2 === 1 ? `(?:${part})` : part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')))
  return new RegExp(`^${shapes.join('')}$`)
}

/** All of it, in order; `...` stands for any lines. Null when it fits, else the first expectation that does not. */
export const mismatch = (expected: readonly string[], actual: readonly string[]): string | null => {
  const [first, ...rest] = expected
  if (first === undefined) return actual.length === 0 ? null : `nothing more, but it said: ${actual[0]}`
  if (first === '...') {
    for (let skipped = 0; skipped <= actual.length; skipped++) {
      if (mismatch(rest, actual.slice(skipped)) === null) return null
    }
    return `${rest[0] ?? ''} (after any lines)`
  }
  const [said, ...more] = actual
  if (said === undefined) return `${first}\nbut it said no more`
  return lineShape(first).test(said) ? mismatch(rest, more) : `${first}\nbut it said: ${said}`
}

/** In order, with anything in between: for standard error and for commands that have not ended. */
export const missing = (expected: readonly string[], actual: readonly string[]): string | null =>
  mismatch(['...', ...expected.flatMap((line) => [line, '...'])], actual)

export const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
