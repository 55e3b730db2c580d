// Serial numbers that we choose for an outside issuer, and how each issuer spells them.

/** More than the 64 bits that RFC 5280 and the browsers' rules ask for, and within their 20 bytes with room for a sign. */
export const serialBytes = 16

/**
 * Hex, lower case, no leading zeros, as serials are written everywhere here. The highest bit is 0: a reader that takes the bytes for a signed number
 * finds it positive. The first digit is not 0, so that it has the same digits whether bytes or digits are printed.
 */
export const serialOf = (random: Uint8Array): string => {
  if (random.length !== serialBytes) throw new Error(`a serial number is made of ${serialBytes} random bytes`)
  const [first = 0, ...rest] = random
  return [(first & 0x7f) | 0x10, ...rest].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** step-ca prints and compares serials as decimal numbers. */
export const decimalSerial = (serial: string): string => BigInt(`0x${serial}`).toString(10)

/** Vault writes whole bytes, separated by colons. */
export const colonSerial = (serial: string): string =>
  (serial.length % 2 === 0 ? serial : `0${serial}`).replaceAll(/..(?=.)/g, '$&:')

/** Of a decimal number; null: it is none, or not a positive one that fits. */
export const serialOfDecimal = (text: string): string | null =>
  /^[1-9]\d{0,48}$/.test(text) ? fitting(BigInt(text).toString(16)) : null

/** Of bytes in pairs; null: it is none. */
export const serialOfColons = (text: string): string | null =>
  /^[0-9a-f]{2}([:-][0-9a-f]{2}){0,20}$/i.test(text)
    ? fitting(
        text
          .replaceAll(/[:-]/g, '')
          .toLowerCase()
          .replace(/^0+(?=.)/, ''),
      )
    : null

const fitting = (serial: string): string | null => (serial === '0' || serial.length > 40 ? null : serial)
