// The CA certificates above the leaves of outside issuers, held in memory as every replica receives them: who signed a leaf, what it hangs
// under, and what a presented certificate is looked up by.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import { readOf, type Row } from '#domain/core/change.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { toPem } from '#pki/pem.ts'
import { keyId } from '#pki/spki.ts'
import type { Core } from '#plane/core/core.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'

export type OutsideBook = {
  find(id: IssuerId): Row<IssuerRow> | null
  /** There is none, and never was. */
  isEmpty(): boolean
  /**
   * The id of the authority that a leaf names by this identifier. An authority outside has chosen its own; where none did, it is the id.
   * One of ours is never taken for one of theirs.
   */
  idOf(subjectKeyId: string): IssuerId
  /** DER, of those that have not been withdrawn and whose key is the one that the row of the issuer names. */
  rootsOf(issuer: Pick<OutsideIssuer, 'roots'>): readonly Uint8Array[]
  /** Those that signed for it, or may have. */
  authoritiesOf(issuer: Pick<OutsideIssuer, 'roots'>): readonly IssuerId[]
  withdrawn(): readonly IssuerId[]
  /** DER, from that authority up to its root, the root last. Empty: it is not one of an outside issuer. */
  pathOf(id: IssuerId): readonly Uint8Array[]
  /** What others have recorded is known when it resolves. */
  lookAgain(): Promise<void>
}

type Known = { readonly row: Row<IssuerRow>; readonly subjectKeyId: string | null; readonly keyId: string }

/** Of authorities: a chain that is longer is never recorded. */
const longestPath = 4

const isOutside = ({ role }: Pick<IssuerRow, 'role'>): boolean => role === 'outside-root' || role === 'outside-issuing'

export const openOutsideBook = async ({ store, feed }: Pick<Core, 'store' | 'feed'>): Promise<OutsideBook> => {
  const known = new Map<IssuerId, Known>()
  const bySubjectKeyId = new Map<string, IssuerId>()
  const ours = new Set<IssuerId>()
  const take = (row: Row<IssuerRow>): void => {
    const { value } = row
    if (!isOutside(value)) return void ours.add(value.id)
    if ((known.get(value.id)?.row.version ?? 0) > row.version) return
    const certificate = parseCertificate(Buffer.from(value.der, 'base64'))
    if (certificate.kind === 'malformed') return
    const { subjectKeyId, spki } = certificate
    known.set(value.id, { row, subjectKeyId, keyId: keyId(spki) })
    if (subjectKeyId !== null) bySubjectKeyId.set(subjectKeyId, value.id)
  }
  const lookAgain = async (): Promise<void> => {
    for (const row of await store.issuers()) take(row)
  }
  feed.subscribe('outside authorities', ({ writes }) => {
    for (const write of writes) {
      if (write.put !== 'issuer') continue
      // A version that was missed is found by `lookAgain`, when a commit that relies on it has lost its race.
      const before = known.get(write.value.id)?.row.version ?? 0
      take({ value: write.value, version: before + 1 })
    }
  })
  await lookAgain()

  const isGood = (id: IssuerId): Known | null => {
    const found = known.get(id)
    return found === undefined || found.keyId !== id || found.row.value.compromisedAtMs !== null ? null : found
  }
  return {
    find: (id) => known.get(id)?.row ?? null,
    isEmpty: () => known.size === 0,
    idOf: (subjectKeyId) =>
      ours.has(subjectKeyId) ? subjectKeyId : (bySubjectKeyId.get(subjectKeyId) ?? subjectKeyId),
    rootsOf: ({ roots }) =>
      roots.flatMap((id) => {
        const found = isGood(id)
        return found?.row.value.role === 'outside-root' ? [Buffer.from(found.row.value.der, 'base64')] : []
      }),
    authoritiesOf({ roots }) {
      const ids = new Set(roots)
      // Parents come in any order; a path has a handful of authorities, so this ends soon.
      for (let before = -1; before !== ids.size;) {
        before = ids.size
        for (const { row } of known.values()) if (ids.has(row.value.parent)) ids.add(row.value.id)
      }
      return [...ids]
    },
    withdrawn: () =>
      [...known.values()].flatMap(({ row }) => (row.value.compromisedAtMs === null ? [] : [row.value.id])),
    pathOf(id) {
      const path: Uint8Array[] = []
      for (let next = known.get(id); next !== undefined && path.length < longestPath;) {
        path.push(Buffer.from(next.row.value.der, 'base64'))
        const { parent } = next.row.value
        if (parent === next.row.value.id) return path
        next = known.get(parent)
      }
      return []
    },
    lookAgain,
  }
}

/** The same, over the authorities of outside issuers as well: what is handed out with their leaves. */
export const withOutside = <I extends Issuer>(own: I, book: OutsideBook, issuerRoots: I['issuerRoots']): I => ({
  ...withOutsideLeaves(own, book),
  issuerRoots,
  rootOf(id) {
    const root = book.pathOf(id).at(-1)
    return root === undefined ? own.rootOf(id) : toPem('CERTIFICATE', root)
  },
})

/** What signs leaves, of nodes or of others. */
export type LeafAuthority = Pick<Issuer, 'chainOf' | 'withdrawnIssuers' | 'rowRead' | 'lookAgain'>

export const withOutsideLeaves = <A extends LeafAuthority>(own: A, book: OutsideBook): A => ({
  ...own,
  chainOf(id: IssuerId) {
    const path = book.pathOf(id)
    return path.length === 0 ? own.chainOf(id) : path.slice(0, -1)
  },
  withdrawnIssuers: () => [...own.withdrawnIssuers(), ...book.withdrawn()],
  rowRead(id: IssuerId) {
    const row = book.find(id)
    return row === null ? own.rowRead(id) : readOf('issuer', id, row)
  },
  async lookAgain() {
    await own.lookAgain()
    await book.lookAgain()
  },
})
