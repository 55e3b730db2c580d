// IP addresses as numbers and as text. IPv6 is written as RFC 5952 says, so that one address has one text.

/** Null: it is none. No zone, and no dotted quad at its end. */
export const parseIpv6 = (text: string): bigint | null => {
  const halves = text.split('::')
  if (halves.length > 2) return null
  const [head, tail] = halves.map(groupsIn)
  if (head === undefined || head === null || tail === null) return null
  const missing = groupCount - head.length - (tail?.length ?? 0)
  if (tail === undefined ? missing !== 0 : missing < 1) return null
  const groups = [...head, ...Array<bigint>(tail === undefined ? 0 : missing).fill(0n), ...(tail ?? [])]
  return groups.reduce((address, group) => (address << 16n) | group, 0n)
}

const groupCount = 8
const groupShape = /^[0-9a-fA-F]{1,4}$/

const groupsIn = (half: string): bigint[] | null => {
  if (half === '') return []
  const groups = half.split(':')
  return groups.every((group) => groupShape.test(group)) ? groups.map((group) => BigInt(`0x${group}`)) : null
}

export const formatIpv6 = (address: bigint): string => {
  const groups = Array.from({ length: groupCount }, (_, at) =>
    ((address >> BigInt(16 * (groupCount - 1 - at))) & 0xffffn).toString(16),
  )
  const { from, length } = longestZeros(groups)
  if (length < 2) return groups.join(':')
  return `${groups.slice(0, from).join(':')}::${groups.slice(from + length).join(':')}`
}

/** The first of the longest. */
const longestZeros = (groups: readonly string[]): { from: number; length: number } => {
  let best = { from: 0, length: 0 }
  let length = 0
  groups.forEach((group, at) => {
    length = group === '0' ? length + 1 : 0
    if (length > best.length) best = { from: at - length + 1, length }
  })
  return best
}

export type Prefix = { readonly network: bigint; readonly bits: number }

/** Null: it is none, or has bits set behind its length. */
export const parsePrefix = (text: string): Prefix | null => {
  const [, address = '', length = ''] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? []
  const network = parseIpv6(address)
  const bits = Number(length)
  if (network === null || bits > 128) return null
  return network % (1n << BigInt(128 - bits)) === 0n ? { network, bits } : null
}

export const formatPrefix = ({ network, bits }: Prefix): string => `${formatIpv6(network)}/${bits}`

export const isWithin = (address: bigint, { network, bits }: Prefix): boolean =>
  address >> BigInt(128 - bits) === network >> BigInt(128 - bits)

export const parseIpv4 = (text: string): readonly number[] | null => {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return null
  return parts.map(Number)
}
