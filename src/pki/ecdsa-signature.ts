// What tokens and key services sign is r and s, one after the other; certificates have both in DER.

import { encode, sequence, unsigned } from './der-writer.ts'

export const derSignature = (signature: Uint8Array): Uint8Array => {
  const half = signature.length / 2
  if (!Number.isInteger(half) || half === 0) throw new Error('a signature that is not two numbers of the same length')
  return encode(sequence(unsigned(signature.subarray(0, half)), unsigned(signature.subarray(half))))
}
