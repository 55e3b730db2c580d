import { createHash, timingSafeEqual } from 'node:crypto'

export const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest()
export const sha256Hex = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

/** Equal in time that does not depend on where two values differ. */
export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b)
