// A task signer whose key is elsewhere. Few signatures are made at once: what else is in the same token gets its turn. One that was made is kept, since an
// envelope is sent again to each new session of its node, and has the same bytes then.

import { hash } from 'node:crypto'
import type { Signer } from '#pki/signer.ts'
import { openSigningSlots } from '#plane/keys/signing-slots.ts'

const mostSigning = 4
/** 64 bytes each. What is dispatched and not answered is less, but for the largest fleets. */
const mostKept = 4096

export const sparingSigner = ({ type, spki, sign }: Signer): Signer => {
  const kept = new Map<string, Uint8Array>()
  // Each node is served by one flow, which waits for its signature.
  const slots = openSigningSlots({ most: mostSigning, mostWaiting: Infinity })
  return {
    type,
    spki,
    async sign(data) {
      const name = hash('sha256', data, 'base64')
      const before = kept.get(name)
      if (before !== undefined) return before
      const made = await slots.run(async () => sign(data))
      if (made === null) throw new Error('a signature found no place among those that wait')
      kept.set(name, made)
      for (const oldest of kept.keys()) if (kept.size > mostKept) kept.delete(oldest)
      return made
    },
  }
}
