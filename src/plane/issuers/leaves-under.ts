// The certificates on record that an issuer has signed for the nodes of a profile and that have not expired, also those that their nodes have
// replaced since: other verifiers take them until they end.

import { mostLeavesCounted, type Migration, type Progress } from '#domain/issuers/migration.ts'
import type { NodeId } from '#domain/core/node.ts'
import type { CertificateRow } from '#domain/core/certificate.ts'
import type { Core } from '#plane/core/core.ts'
import { unexpiredPages } from '#plane/core/pages.ts'
import { underOnly, type MigrationParts } from './migration-progress.ts'

export const noLeaves: Progress['leaves'] = { count: 0, lastMs: 0 }

/** Of the old issuer. Revoked nodes and epochs of before are denied, and left out. */
export const leavesUnder = async (
  core: Pick<Core, 'store' | 'clock' | 'timers'>,
  parts: Pick<MigrationParts, 'known' | 'book'>,
  { profile, from, to }: Pick<Migration, 'profile' | 'from' | 'to'>,
): Promise<Progress['leaves']> => {
  const { store, clock, timers } = core
  const isOld = underOnly(parts, from, to)
  /** By node, the epoch that its certificates count with; null: none do. */
  const epochs = new Map<NodeId, number | null>()
  const epochOf = async (id: NodeId): Promise<number | null> => {
    const known = epochs.get(id)
    if (known !== undefined) return known
    const node = (await store.get('node', id))?.value
    const counts = node !== undefined && node.profile === profile && node.membership.kind !== 'revoked'
    const epoch = counts ? node.epoch : null
    epochs.set(id, epoch)
    return epoch
  }
  const counts = async ({ issuer, subject }: CertificateRow): Promise<boolean> =>
    subject.kind === 'node' && isOld(issuer) && (await epochOf(subject.node)) === subject.epoch

  let found = noLeaves
  for await (const page of unexpiredPages(store, clock.nowMs(), timers))
    for (const { value } of page) {
      if (!(await counts(value))) continue
      found = { count: found.count + 1, lastMs: Math.max(found.lastMs, value.notAfterMs) }
      if (found.count === mostLeavesCounted) return found
    }
  return found
}
