// Text from the plane passes through here before it reaches a terminal: a node could otherwise name itself with escape
// sequences that rewrite what the operator sees.

import { printableText, unprintable } from '#platform/printable-text.ts'

/** One line: control, format and direction characters become visible escapes. */
export const printable = printableText

/** JSON with the same characters escaped in JSON's own way, so that it stays the same value. */
export const printableJson = (value: unknown, indent: number): string =>
  JSON.stringify(value, null, indent).replace(unprintable, (character) =>
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
