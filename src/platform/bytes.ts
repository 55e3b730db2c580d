import { hash, timingSafeEqual } from 'node:crypto'

// In one call: a hash object costs three times as much as hashing what a row or a token is.
export const sha256 = (data: string | Uint8Array): Buffer => hash('sha256', data, 'buffer')
export const sha256Hex = (data: string | Uint8Array): string => hash('sha256', data, 'hex')

/** Equal in time that does not depend on where two values differ. */
export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b)
