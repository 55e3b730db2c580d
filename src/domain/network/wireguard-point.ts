// Whether 32 bytes are a public key that WireGuard can keep a secret with. Two texts for one key would make two nodes of one
// key holder, and with a point of small order everybody shares the same secret.

const field = (1n << 255n) - 19n

/** u-coordinates of the points of small order (RFC 7748 §6.1, Bernstein's list), in their one canonical form. */
const smallOrder: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
  field - 1n,
])

/** What is wrong with it; null: nothing. Base64 of 32 bytes, as the schema has it. */
export const wireguardKeyProblem = (publicKey: string): string | null => {
  const bytes = [...atob(publicKey)].map((character) => character.charCodeAt(0))
  if (bytes.length !== 32) return 'a WireGuard key has 32 bytes'
  const point = bytes.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n)
  if (point >= field) return 'the WireGuard key is not in its canonical form'
  return smallOrder.has(point) ? 'the WireGuard key is of small order, and keeps nothing secret' : null
}
