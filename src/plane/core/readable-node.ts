// A node whose row cannot be read is withdrawn by what else is in the store: its certificates, and its entries in the journal.

import type { CertificateRow } from '#domain/core/certificate.ts'
import type { Row } from '#domain/core/change.ts'
import { withCertificates } from '#domain/journal/node-shape.ts'
import type { Node, NodeId } from '#domain/core/node.ts'
import { membershipEntryTypes } from '#domain/journal/rows-and-journal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { domainSettingsRow } from './domain-settings-row.ts'
import { certificatesOf } from './pages.ts'

const mostCertificates = 1000
const newestEntries = 32

/** The same row where it can be read. */
export const readableNode = async (
  store: Pick<Store, 'get' | 'list' | 'journal'>,
  node: Row<Node>,
): Promise<Row<Node>> => {
  if (node.value.unreadable === undefined) return node
  const { id, profile } = node.value
  const certificates = await newestCertificates(store, id)
  const query = { node: id, after: null, last: newestEntries, limit: newestEntries }
  // Hundreds that say no membership may have come since it was revoked.
  const newest = await store.journal.read({ ...query, type: null })
  const entries = [...newest, ...(await store.journal.read({ ...query, type: membershipEntryTypes }))]
  const value = withCertificates(
    node.value,
    certificates,
    entries.map(({ entry }) => entry),
  )
  if ((await store.get('profile', profile)) !== null) return { ...node, value }
  const { defaultProfile } = (await domainSettingsRow(store)).value
  return { ...node, value: { ...value, profile: defaultProfile } }
}

const newestCertificates = async (store: Pick<Store, 'list'>, node: NodeId): Promise<readonly CertificateRow[]> => {
  const certificates = await Array.fromAsync(certificatesOf(store, node))
  return certificates.toSorted((one, other) => other.issuedAtMs - one.issuedAtMs).slice(0, mostCertificates)
}
