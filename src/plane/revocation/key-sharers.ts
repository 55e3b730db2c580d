// Which other nodes a ban of a node's keys reaches, and what cuts them off: a denial of each of their certificates over such
// a key. Denials close channels, and are what OCSP, revocation lists and replicas of an older release know of.

import { deniedOverKey, type CertificateRow } from '#domain/core/certificate.ts'
import { readOf, type Row, type ChangePart } from '#domain/core/change.ts'
import { holdingsOf, otherOwners, type KeyClaim } from '#domain/identity/key-claim.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { certificatesOf } from '#plane/core/pages.ts'
import type { Store } from '#plane/store/contract/store.ts'

export type KeySharers = {
  /** The claims that were looked at. */
  readonly claims: readonly (readonly [spki: string, row: Row<KeyClaim> | null])[]
  /** Other nodes that use one of the keys now: a certificate over it has not expired, or they would recover with it. */
  readonly nodes: readonly Node[]
  readonly certificates: readonly CertificateRow[]
}

export const keySharers = async (
  store: Pick<Store, 'get' | 'list'>,
  id: NodeId,
  keys: readonly string[],
  nowMs: number,
): Promise<KeySharers> => {
  const claims = await Promise.all(keys.map(async (spki) => [spki, await store.get('key-claim', spki)] as const))
  const others = [...new Set(claims.flatMap(([, row]) => otherOwners(row, id)))]
  const nodes: Node[] = []
  const certificates: CertificateRow[] = []
  for (const other of others) {
    const node = (await store.get('node', other))?.value
    if (node === undefined || node.membership.kind === 'revoked') continue
    const over = (await Array.fromAsync(certificatesOf(store, other))).filter(
      (row) => keys.includes(row.spki) && row.notAfterMs > nowMs,
    )
    certificates.push(...over)
    if (over.length > 0 || holdingsOf(node).some(({ spki }) => keys.includes(spki))) nodes.push(node)
  }
  return { claims, nodes, certificates }
}

export const sharersCut = (sharers: KeySharers, banned: NodeId, toleranceMs: number, atMs: number): ChangePart => ({
  reads: sharers.claims.map(([spki, row]) => readOf('key-claim', spki, row)),
  writes: sharers.certificates.map((row) => deniedOverKey(row, `its key was banned with ${banned}`, toleranceMs, atMs)),
})
