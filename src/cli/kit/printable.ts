// Text from the plane passes through here before it reaches a terminal: a node could otherwise name itself with escape
// sequences that rewrite what the operator sees.

const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/** One line: control, format and direction characters become visible escapes. */
export const printable = (text: string): string => text.replace(unsafe, escaped)

/** JSON with the same characters escaped in JSON's own way, so that it stays the same value. */
export const printableJson = (value: unknown, indent: number): string =>
  JSON.stringify(value, null, indent).replace(unsafe, (character) =>
    character === '\n'
      ? character
      : [...utf16(character)].map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join(''),
  )

function* utf16(character: string): Generator<number> {
  for (let at = 0; at < character.length; at++) yield character.charCodeAt(at)
}

/** A PEM text of the plane, line by line. */
export const pemLines = (pem: string): string[] => pem.trimEnd().split('\n').map(printable)

/** A text as one word of a shell command that can be pasted. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
