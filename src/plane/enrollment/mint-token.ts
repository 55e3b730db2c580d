// What a new token is made of: a secret that is shown once, its hash, and the join string that carries it.

import { claimedName } from '#domain/programs/name-claim.ts'
import { hostOfUrl } from '#domain/programs/served-names.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { sortableId } from '#platform/random.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import { formatJoinString } from '#wire/core/join-string.ts'

/** What a join string carries besides the secret. */
export type JoinTarget = {
  readonly issuer: Pick<Issuer, 'rootFingerprint'>
  /** Where machines find the node listener. */
  readonly urls: () => Pick<PlaneUrls, 'node' | 'marked'>
}

type Minted = {
  readonly tokenId: string
  /** Shown once; only its hash is kept. */
  readonly secret: string
  readonly secretHash: string
  readonly serverName: string | null
}

export const mintToken = ({ random, clock, store }: FlowCore, target: JoinTarget): Minted => {
  const secret = `enroll_${random.bytes(32).toString('base64url')}`
  return {
    tokenId: sortableId(clock.nowMs(), random),
    secret,
    secretHash: sha256Hex(secret),
    // Replicas of 0.3 do not know the field.
    serverName: store.unfinishedUpgrade() === null ? claimedName(hostOfUrl(target.urls().node)) : null,
  }
}

export const joinStringOf = ({ issuer, urls }: JoinTarget, domain: string, secret: string): string => {
  const { node: url, marked } = urls()
  return formatJoinString({ url, domain, rootFingerprint: issuer.rootFingerprint(), secret, marked })
}
