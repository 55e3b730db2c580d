// Other domains that may have the same machines in their registries. Advisory only: no answer of theirs ever decides
// anything here.

import type { NodeId } from '#domain/core/node.ts'

export type PeerDomain = {
  readonly name: string
  /** Its node listener: `POST /v1/claims` is there. */
  readonly url: string
  /** PEM of the roots its listener is verified with. */
  readonly roots: readonly string[]
  /** SubjectPublicKeyInfo, DER, base64: who signs its claims. */
  readonly statementKeys: readonly string[]
  readonly addedAtMs: number
  readonly addedBy: string
  readonly removedAtMs: number | null
}

/** What another domain last said of a machine, by one of its hardware addresses. */
export type Claim = {
  /** `mac:...` or `bmc:...`. */
  readonly hardware: string
  readonly domain: string
  readonly node: NodeId
  readonly state: 'active' | 'inactive'
  readonly atMs: number
  readonly receivedAtMs: number
}

export const claimKey = ({ hardware, domain }: Pick<Claim, 'hardware' | 'domain'>): string => `${hardware}/${domain}`

/** A claim nobody repeated for so long says nothing any more. */
export const claimKeptMs = 30 * 24 * 3_600_000
