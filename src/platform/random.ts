import { randomFillSync } from 'node:crypto'

export type Random = {
  /** Cryptographically strong. */
  bytes(count: number): Buffer
  /** Uniform in [0, 1); for jitter, never for secrets. */
  unit(): number
}

const poolBytes = 4096

/** A call to the generator costs the same for a few bytes as for a few thousand: they are drawn ahead, and used once. */
const openPool = (): Random['bytes'] => {
  const pool = Buffer.alloc(poolBytes)
  let used = poolBytes
  return (count) => {
    if (count > poolBytes / 4) return randomFillSync(Buffer.alloc(count))
    if (used + count > poolBytes) {
      randomFillSync(pool)
      used = 0
    }
    const taken = Buffer.from(pool.subarray(used, used + count))
    pool.fill(0, used, used + count)
    used += count
    return taken
  }
}

export const systemRandom: Random = {
  bytes: openPool(),
  unit: () => Math.random(),
}

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 26 characters that sort by time: 48 bits of milliseconds, 80 random bits. */
export const sortableId = (nowMs: number, random: Random): string => {
  const bytes = random.bytes(10)
  return (
    lastOf(2, Math.floor(nowMs / 2 ** 40)) +
    eightOf(nowMs % 2 ** 40) +
    // Five bytes are eight characters.
    eightOf(bytes.readUIntBE(0, 5)) +
    eightOf(bytes.readUIntBE(5, 5))
  )
}

/** Of 40 bits, more than the bit operators take at once. */
const eightOf = (bits: number): string => lastOf(4, Math.floor(bits / 2 ** 20)) + lastOf(4, bits % 2 ** 20)

const lastOf = (count: number, bits: number): string => {
  let text = ''
  for (let shift = 5 * (count - 1); shift >= 0; shift -= 5) text += crockford[(bits >> shift) & 31]
  return text
}
