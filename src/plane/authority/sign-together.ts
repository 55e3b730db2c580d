// Signatures that are asked for in one turn of the event loop are made one after the other at its end. Between two decisions a signature takes
// half as long again: the tables of the curve, 150 KiB, are no longer in the cache of the processor.

import type { Signer } from '#pki/signer.ts'
import type { Timers } from '#platform/timers.ts'

type Waiting = {
  readonly key: Signer
  readonly data: Uint8Array
  resolve(signature: Uint8Array | Promise<Uint8Array>): void
  reject(error: unknown): void
}

/** The same key, which signs with others of its turn. One that is elsewhere is asked as late, and makes its signatures as it does. */
export const signTogether = (timers: Pick<Timers, 'soon'>): ((key: Signer) => Signer) => {
  const known = new WeakMap<Signer, Signer>()
  let waiting: Waiting[] = []
  const signAll = (): void => {
    const turn = waiting
    waiting = []
    for (const { key, data, resolve, reject } of turn)
      try {
        resolve(key.sign(data))
      } catch (error) {
        reject(error)
      }
  }
  const later = (key: Signer): Signer => ({
    type: key.type,
    spki: key.spki,
    sign: (data) =>
      new Promise((resolve, reject) => {
        if (waiting.push({ key, data, resolve, reject }) === 1) timers.soon(signAll)
      }),
  })
  return (key) => {
    const before = known.get(key)
    if (before !== undefined) return before
    const made = later(key)
    known.set(key, made)
    return made
  }
}
