// Which outputs need a leaf, and when. All functions here are pure.

import type { KeyType } from '#domain/core/profile.ts'
import { jitterOf, renewAtMs } from '#agent/state/should-renew.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'

/** What a leaf is made for. Another leaf is due where any of it differs from what is wanted now. */
export type LeafTerms = {
  readonly output: string
  /** Of the node's identity: a new one leaves the old leaf good until another is in place. */
  readonly epoch: number
  readonly keyType: KeyType
  readonly usage: ConfigOutput['usage']
  /** Sorted. */
  readonly names: readonly string[]
}

export const termsOf = ({ name, key_type, usage, names }: ConfigOutput, epoch: number): LeafTerms => ({
  output: name,
  epoch,
  keyType: key_type,
  usage,
  names: [...names].sort(),
})

export const sameTerms = (a: LeafTerms, b: LeafTerms): boolean =>
  a.output === b.output &&
  a.epoch === b.epoch &&
  a.keyType === b.keyType &&
  a.usage === b.usage &&
  a.names.join('\n') === b.names.join('\n')

export type LeafTimes = { readonly serial: string; readonly issuedAtMs: number; readonly notAfterMs: number }

/** Between half and two thirds of its lifetime; of the lifetime that is wanted now, where that is shorter. */
export const leafDueAtMs = ({ serial, issuedAtMs, notAfterMs }: LeafTimes, lifetimeMs: number): number =>
  renewAtMs({ issuedAtMs, notAfterMs: Math.min(notAfterMs, issuedAtMs + lifetimeMs) }, window, jitterOf(serial))

const window = { renewFrom: 1 / 2, renewTo: 2 / 3 }

/** `leaf`: the one at hand; null: none. */
export const needsLeaf = (
  output: ConfigOutput,
  leaf: (LeafTerms & LeafTimes) | null,
  epoch: number,
  nowMs: number,
): boolean =>
  leaf === null || !sameTerms(leaf, termsOf(output, epoch)) || nowMs >= leafDueAtMs(leaf, output.lifetime_ms)

/** What keeps a list of outputs from being used; null: nothing does. */
export const faultOfOutputs = (outputs: readonly ConfigOutput[]): string | null => {
  if (new Set(outputs.map(({ name }) => name)).size !== outputs.length) return 'two outputs of one name'
  const open = outputs.find(({ files }) => (files.key_mode & ~0o660) !== 0)
  return open === undefined ? null : `the key of output ${open.name} could be read by everyone, or run`
}
