// What the plane makes of a frame from an agent.

import { Compile } from 'typebox/compile'
import { AgentFrame } from '#wire/channel.ts'

const known = Compile(AgentFrame)
const knownTypes: ReadonlySet<unknown> = new Set(['hello', 'applied', 'unknown_type'])

export type ReadFrame =
  | { readonly kind: 'frame'; readonly frame: AgentFrame }
  /** Well formed, of a type this plane does not have: answered, not ignored. */
  | { readonly kind: 'unknown'; readonly type: string; readonly seq: number }
  | { readonly kind: 'malformed' }

export const readFrame = (text: string): ReadFrame => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'malformed' }
  }
  if (known.Check(value)) return { kind: 'frame', frame: value }
  if (typeof value !== 'object' || value === null || !('type' in value) || !('seq' in value))
    return { kind: 'malformed' }
  const { type, seq } = value
  if (typeof type !== 'string' || !Number.isSafeInteger(seq) || knownTypes.has(type)) return { kind: 'malformed' }
  return { kind: 'unknown', type: type.slice(0, 64), seq: Number(seq) }
}
