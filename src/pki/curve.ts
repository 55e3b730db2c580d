// Whether the bytes of a public key are a point we want to see: on its curve, in its one encoding, not of small order.

type Curve = { readonly p: bigint; readonly b: bigint; readonly size: number }

/** y² = x³ - 3x + b mod p (SP 800-186). */
export const p256: Curve = {
  p: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
  b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
  size: 32,
}
export const p384: Curve = {
  p: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
  b: 0xb3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aefn,
  size: 48,
}

export const isUncompressed = (curve: Curve, point: Uint8Array): boolean =>
  point.length === 1 + 2 * curve.size && point[0] === 0x04

/** Uncompressed, both coordinates below p, on the curve. */
export const isPointOf = (curve: Curve, point: Uint8Array): boolean => {
  if (!isUncompressed(curve, point)) return false
  const x = bigEndian(point.subarray(1, 1 + curve.size))
  const y = bigEndian(point.subarray(1 + curve.size))
  if (x >= curve.p || y >= curve.p) return false
  return (y * y - x * x * x + 3n * x - curve.b) % curve.p === 0n
}

const edP = 2n ** 255n - 19n

/** The y of the eight points of small order: anyone can sign for such a "key", so it proves the possession of nothing. */
const smallOrderY: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  edP - 1n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
])

/** 32 bytes in their one encoding, not of small order. Whether it is on the curve shows when a signature is verified. */
export const isEd25519Key = (key: Uint8Array): boolean => {
  if (key.length !== 32) return false
  const y = bigEndian(key.toReversed()) & (2n ** 255n - 1n)
  return y < edP && !smallOrderY.has(y)
}

const bigEndian = (bytes: Uint8Array): bigint =>
  BigInt('0x' + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex'))
