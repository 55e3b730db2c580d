/** Control, format, private and direction characters, halves of pairs, and ends of lines. */
export const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}

/**
 * One line for a terminal: control, format and direction characters become visible escapes. A node could otherwise name itself with
 * sequences that rewrite what a person sees.
 */
export const printableText = (text: string): string => text.replace(unprintable, escaped)
