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
  let text = ''
  for (let rest = nowMs, i = 0; i < 10; i++) {
    text = crockford[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  const bytes = random.bytes(10)
  for (let at = 0; at < 10; at += 5) {
    // Five bytes are eight characters.
    const high = bytes.readUIntBE(at, 5)
    for (let shift = 7; shift >= 0; shift--) text += crockford[Math.floor(high / 32 ** shift) % 32]
  }
  return text
}
