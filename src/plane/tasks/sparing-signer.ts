// A task signer whose key is elsewhere. Few signatures are made at once: what else is in the same token gets its turn. One that was made is kept, since an
// envelope is sent again to each new session of its node, and has the same bytes then.

import { hash } from 'node:crypto'
import type { Signer } from '#pki/signer.ts'
import type { Clock } from '#platform/clock.ts'
import { isKeyUnavailable } from '#plane/keys/key-unavailable.ts'
import { openSigningSlots } from '#plane/keys/signing-slots.ts'

const mostSigning = 4
/** 64 bytes each. What is dispatched and not answered is less, but for the largest fleets. */
const mostKept = 4096
const restMs = 1000

export type SparingSigner = Signer & {
  /** Its key could not be used a moment ago. Each node with a task asks once a second, and reads what it needs for that. */
  isResting(): boolean
}

export const sparingSigner = ({ type, spki, sign }: Signer, clock: Pick<Clock, 'monotonicMs'>): SparingSigner => {
  const kept = new Map<string, Uint8Array>()
  let restsUntilMs = -Infinity
  // Each node is served by one flow, which waits for its signature.
  const slots = openSigningSlots({ most: mostSigning, mostWaiting: Infinity })
  return {
    type,
    spki,
    isResting: () => clock.monotonicMs() < restsUntilMs,
    async sign(data) {
      const name = hash('sha256', data, 'base64')
      const before = kept.get(name)
      if (before !== undefined) return before
      try {
        const made = await slots.run(async () => sign(data))
        if (made === null) throw new Error('a signature found no place among those that wait')
        kept.set(name, made)
        for (const oldest of kept.keys()) if (kept.size > mostKept) kept.delete(oldest)
        return made
      } catch (error) {
        if (isKeyUnavailable(error)) restsUntilMs = clock.monotonicMs() + restMs
        throw error
      }
    },
  }
}
