// IP addresses and networks: text, bytes, and which address is in which network. Pure, so that every package may use it. One
// address has one text, which for IPv6 is that of RFC 5952.

/** 4 bytes of IPv4 or 16 of IPv6. */
export type IpAddress = Uint8Array

/** Null if the text is no address. An address with a zone (`%eth0`) is none. */
export const parseIp = (text: string): IpAddress | null => (text.includes(':') ? ipv6Bytes(text) : ipv4Bytes(text))

/** As `parseIp`, for IPv6 written in groups only: no dotted quad at its end. */
export const parseIpv6 = (text: string): IpAddress | null =>
  text.includes('.') || !text.includes(':') ? null : ipv6Bytes(text)

const ipv4Bytes = (text: string): IpAddress | null => {
  // A leading zero would be octal to some readers.
  if (!/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}$/.test(text)) return null
  const bytes = text.split('.').map(Number)
  return bytes.every((byte) => byte <= 255) ? Uint8Array.from(bytes) : null
}

const groupCount = 8
const longestText = 45

const ipv6Bytes = (text: string): IpAddress | null => {
  const halves = text.split('::')
  if (halves.length > 2 || text.length > longestText) return null
  const [head, tail] = halves.map((half) => (half === '' ? [] : half.split(':')))
  if (head === undefined) return null
  const left = groupsOf(head, tail === undefined)
  const right = tail === undefined ? [] : groupsOf(tail, true)
  if (left === null || right === null) return null
  const missing = groupCount - left.length - right.length
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

export const formatIp = (address: IpAddress): string => {
  if (address.length === 4) return address.join('.')
  const groups = ipv6Groups(address)
  const zeros = longestZeros(groups)
  if (zeros.length < 2) return groups.join(':')
  return `${groups.slice(0, zeros.from).join(':')}::${groups.slice(zeros.from + zeros.length).join(':')}`
}

/** The eight groups of an IPv6 address, without leading zeros. */
export const ipv6Groups = (address: IpAddress): readonly string[] =>
  Array.from({ length: groupCount }, (_, at) =>
    (((address[2 * at] ?? 0) << 8) | (address[2 * at + 1] ?? 0)).toString(16),
  )

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

export const ipNumber = (address: IpAddress): bigint =>
  address.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n)

export const ipv6OfNumber = (number: bigint): IpAddress =>
  Uint8Array.from({ length: 16 }, (_, at) => Number((number >> BigInt(8 * (15 - at))) & 0xffn))

export type Network = { readonly bytes: IpAddress; readonly bits: number }

/** `10.0.0.0/8`; null for anything else, and where bits behind the prefix are set. */
export const parseNetwork = (text: string): Network | null => {
  const [, address = '', length = ''] = /^([0-9a-fA-F.:]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const bytes = parseIp(address)
  const bits = Number(length)
  if (bytes === null || length === '' || bits > bytes.length * 8) return null
  const network = { bytes, bits }
  return bytes.every((byte, at) => (byte & ~maskAt(network, at)) === 0) ? network : null
}

/** For networks that the code names: a text that is none is a bug. */
export const networksOf = (...texts: readonly string[]): readonly Network[] =>
  texts
    .flatMap((text) => text.split(' '))
    .map((text) => {
      const network = parseNetwork(text)
      if (network === null) throw new Error(`${text} is not a network`)
      return network
    })

export const formatNetwork = ({ bytes, bits }: Network): string => `${formatIp(bytes)}/${bits}`

/** Of one family only: an IPv4 address is in no IPv6 network, however it is written. */
export const inOneOf = (networks: readonly Network[], address: IpAddress): boolean =>
  networks.some(
    (network) =>
      network.bytes.length === address.length &&
      network.bytes.every((byte, at) => ((byte ^ (address[at] ?? 0)) & maskAt(network, at)) === 0),
  )

/** The bits of the byte at this place that belong to the prefix. */
const maskAt = ({ bits }: Network, at: number): number => {
  const here = Math.min(8, Math.max(0, bits - at * 8))
  return (0xff << (8 - here)) & 0xff
}

const mapped = networksOf('::ffff:0:0/96')
const mappedBytes = 12

/** An IPv6 socket spells an IPv4 caller as ::ffff:a.b.c.d: that is the IPv4 address. */
export const unmapped = (address: IpAddress): IpAddress =>
  inOneOf(mapped, address) ? address.subarray(mappedBytes) : address

/** The same for a network: one that holds more than mapped addresses stays what it is. */
export const unmappedNetwork = (network: Network): Network =>
  network.bits >= mappedBytes * 8 && inOneOf(mapped, network.bytes)
    ? { bytes: network.bytes.subarray(mappedBytes), bits: network.bits - mappedBytes * 8 }
    : network
