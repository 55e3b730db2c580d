import { randomBytes } from 'node:crypto'

export type Random = {
  /** Cryptographically strong. */
  bytes(count: number): Buffer
  /** Uniform in [0, 1); for jitter, never for secrets. */
  unit(): number
}

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  unit: () => Math.random(),
}

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 26 characters that sort by time: 48 bits of milliseconds, 80 random bits. */
export const sortableId = (nowMs: number, random: Random): string => {
  let bits = (BigInt(nowMs) << 80n) | BigInt('0x' + random.bytes(10).toString('hex'))
  let text = ''
  for (let i = 0; i < 26; i++) {
    text = crockford[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text
}
