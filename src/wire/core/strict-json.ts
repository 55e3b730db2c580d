// What is refused in JSON from outside, for every schema.
//
// Text: PostgreSQL cannot keep U+0000, and half of a surrogate pair becomes another character when it is encoded: what was
// signed, hashed or compared would not be what is read back. Objects that name a key twice: two readers could take different
// values of it.

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

/** `value` is what `JSON.parse` made of `text`. The text has one colon outside of strings for each key it names. */
export const hasDuplicateKeys = (text: string, value: unknown): boolean => keysNamed(text) !== keysKept(value)

const keysNamed = (text: string): number => {
  let colons = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (inString) {
      if (character === backslash) at++
      else if (character === quote) inString = false
    } else if (character === quote) inString = true
    else if (character === colon) colons++
  }
  return colons
}

const quote = 0x22
const colon = 0x3a
const backslash = 0x5c

/** Parsed JSON is a tree, and bodies are at most 64 KiB: the depth is bounded by the text. */
const keysKept = (value: unknown): number => {
  let keys = 0
  const open: unknown[] = [value]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue
    if (!Array.isArray(next)) keys += Object.keys(next).length
    for (const inside of Object.values(next)) if (inside !== null) open.push(inside)
  }
  return keys
}
