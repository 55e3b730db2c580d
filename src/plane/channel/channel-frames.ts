// What the plane makes of a frame from an agent.

import { AgentFrame } from '#wire/channel/channel.ts'
import { compiledCheck } from '#wire/core/compiled-check.ts'
import { hasDuplicateKeys, unfitText } from '#wire/core/strict-json.ts'

const known = compiledCheck(AgentFrame)
const knownTypes: ReadonlySet<unknown> = new Set(AgentFrame.anyOf.map(({ properties }) => properties.type.const))
const longestType = 64

export type ReadFrame =
  | { readonly kind: 'frame'; readonly seq: number; readonly frame: AgentFrame }
  /** Well formed, of a type this plane does not have: answered, not ignored. */
  | { readonly kind: 'unknown'; readonly seq: number; readonly type: string }
  | { readonly kind: 'malformed'; readonly why: string }

const malformed = (why: string): ReadFrame => ({ kind: 'malformed', why })

export const readFrame = (text: string): ReadFrame => {
  const value = jsonOrNull(text)
  if (typeof value !== 'object' || value === null || !('type' in value && 'seq' in value && 'stream' in value)) {
    return malformed('not a frame')
  }
  if (unfitText(value) !== null) return malformed('it has a NUL character or half of a surrogate pair')
  // Only the control stream exists: an agent that uses another relies on something this plane never offered.
  if (value.stream !== 0) return malformed('no such stream is open')
  if (known.Check(value)) return { kind: 'frame', seq: value.seq, frame: value }
  const { type, seq } = value
  if (typeof type !== 'string' || !Number.isSafeInteger(seq)) return malformed('not a frame')
  if (knownTypes.has(type)) return malformed(`the frame ${type} does not fit its schema`)
  return { kind: 'unknown', seq: Number(seq), type: type.slice(0, longestType) }
}

const jsonOrNull = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text)
    return hasDuplicateKeys(text, value) ? null : value
  } catch {
    return null
  }
}
