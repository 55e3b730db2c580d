// JSON in which an object names a key twice is refused everywhere: two readers could take different values of it.

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
