// PEM, one shape of it: the label asked for, base64 in its only valid form, nothing before, between or after. Lines may
// end either way and be of any length.

import { sha256Hex } from '#platform/bytes.ts'

const longestText = 1 << 20

export const toPem = (label: string, der: Uint8Array): string => {
  const base64 = Buffer.from(der.buffer, der.byteOffset, der.byteLength).toString('base64')
  let lines = ''
  for (let at = 0; at < base64.length; at += 64) lines += base64.slice(at, at + 64) + '\n'
  return `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n`
}

/** Exactly one block, or null. */
export const fromPem = (label: string, text: string): Uint8Array | null => {
  const all = allFromPem(label, text)
  return all !== null && all.length === 1 ? (all[0] ?? null) : null
}

/** One block or more and nothing else, or null. */
export const allFromPem = (label: string, text: string): Uint8Array[] | null => {
  if (text.length > longestText) return null
  const begin = `-----BEGIN ${label}-----`
  const end = `-----END ${label}-----`
  const blocks: Uint8Array[] = []
  let rest = text.trim()
  while (rest !== '') {
    const stop = rest.indexOf(end)
    if (!rest.startsWith(begin) || stop === -1) return null
    const der = fromBase64(rest.slice(begin.length, stop))
    if (der === null) return null
    blocks.push(der)
    rest = rest.slice(stop + end.length).trimStart()
  }
  return blocks.length === 0 ? null : blocks
}

const fromBase64 = (lines: string): Uint8Array | null => {
  if (!/^\r?\n/.test(lines) || !lines.endsWith('\n')) return null
  const base64 = lines.replace(/\r?\n/g, '')
  // Node skips what is not base64; writing it again shows whether anything was skipped.
  const der = Buffer.from(base64, 'base64')
  return der.length > 0 && der.toString('base64') === base64 ? der : null
}

/** By which two sides see whether they have the same roots. `roots`: PEM, in the order in which they were sent. */
export const rootsHash = (roots: readonly string[]): string => sha256Hex(roots.join(''))
