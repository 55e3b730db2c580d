// IP addresses between text and the bytes a certificate holds.

/** 4 or 16 bytes, or null for what is not an address. */
export const ipBytes = (text: string): Uint8Array | null => (text.includes(':') ? ipv6Bytes(text) : ipv4Bytes(text))

const ipv4Bytes = (text: string): Uint8Array | null => {
  // A leading zero would be octal to some readers.
  if (!/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}$/.test(text)) return null
  const bytes = text.split('.').map(Number)
  return bytes.every((byte) => byte <= 255) ? Uint8Array.from(bytes) : null
}

const ipv6Bytes = (text: string): Uint8Array | null => {
  const halves = text.split('::')
  if (halves.length > 2 || text.length > 45) return null
  const [head, tail] = halves.map((half) => (half === '' ? [] : half.split(':')))
  if (head === undefined) return null
  const left = groupsOf(head, tail === undefined)
  const right = tail === undefined ? [] : groupsOf(tail, true)
  if (left === null || right === null) return null
  const missing = 8 - left.length - right.length
  if (tail === undefined ? missing !== 0 : missing < 1) return null
  const groups = [...left, ...Array<number>(missing).fill(0), ...right]
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]))
}

const groupsOf = (parts: readonly string[], last: boolean): number[] | null => {
  const groups: number[] = []
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16))
      continue
    }
    const [a, b, c, d] = (last && index === parts.length - 1 ? ipv4Bytes(part) : null) ?? []
    if (a === undefined || b === undefined || c === undefined || d === undefined) return null
    groups.push((a << 8) | b, (c << 8) | d)
  }
  return groups
}

/** The text of 4 or 16 bytes; for IPv6 as RFC 5952 shortens it. */
export const ipText = (bytes: Uint8Array): string => {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  )
  const zeros = longestZeros(groups)
  if (zeros.length < 2) return groups.join(':')
  return `${groups.slice(0, zeros.from).join(':')}::${groups.slice(zeros.from + zeros.length).join(':')}`
}

const longestZeros = (groups: readonly string[]): { from: number; length: number } => {
  let best = { from: 0, length: 0 }
  for (let from = 0; from < groups.length; from++) {
    let length = 0
    while (groups[from + length] === '0') length++
    if (length > best.length) best = { from, length }
  }
  return best
}
