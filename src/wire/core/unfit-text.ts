// Text that is refused wherever it comes from outside. PostgreSQL cannot keep U+0000, and half of a surrogate pair becomes
// another character when it is encoded: what was signed, hashed or compared would not be what is read back.

const nul = '\u0000'

const isUnfit = (text: string): boolean => text.includes(nul) || !text.isWellFormed()

/** Where in a parsed value such text is: `''`, `/macs/0`. A key that is such text is not repeated. Null: nowhere. */
export const unfitText = (value: unknown): string | null => {
  const open: (readonly [place: string, value: unknown])[] = [['', value]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [place, inside] = next
    if (typeof inside === 'string') {
      if (isUnfit(inside)) return place
    } else if (typeof inside === 'object' && inside !== null) {
      for (const [key, one] of Object.entries(inside)) {
        if (isUnfit(key)) return place
        open.push([`${place}/${key}`, one])
      }
    }
  }
  return null
}
