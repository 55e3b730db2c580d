// The issuers of the domain as OCSP names them, by digests of their name and key, each with its responder.

import { hash } from 'node:crypto'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { keyHash } from '#pki/keys.ts'
import type { CertId } from '#pki/ocsp-request.ts'
import type { Core } from '#plane/core/core.ts'
import { certificateOf } from '#plane/authority/ca-signer.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { findResponder, type FoundResponder } from '#plane/authority/responder.ts'

export type Responder = { readonly issuer: IssuerId; readonly notAfterMs: number; readonly identity: FoundResponder }

/** Null: there is no responder for such an issuer. */
export type Responders = (asked: Pick<CertId, 'hash' | 'issuerNameHash' | 'issuerKeyHash'>) => Promise<Responder | null>

/** Another plane may have made one a moment ago; requests about unknown issuers do not make us look more often. */
const lookEveryMs = 1000

export const openResponders = (
  { store, feed, clock }: Pick<Core, 'store' | 'feed' | 'clock'>,
  custody: KeyCustody,
): Responders => {
  let byName = new Map<string, IssuerRow>()
  const opened = new Map<IssuerId, Responder>()
  let lookedAtMs = -Infinity
  let looking: Promise<void> | null = null
  const look = async (): Promise<void> => {
    lookedAtMs = clock.monotonicMs()
    const issuing = (await store.issuers()).filter(({ value }) => value.role === 'issuing')
    byName = new Map(issuing.flatMap(({ value }) => namesOf(value).map((name) => [name, value])))
    await custody.refresh()
  }
  feed.subscribe('OCSP responders', ({ writes }) => {
    if (writes.some(({ put }) => put === 'issuer')) lookedAtMs = -Infinity
  })
  const known = (name: string): Responder | null => {
    const row = byName.get(name)
    if (row === undefined) return null
    const before = opened.get(row.id)
    if (before !== undefined) return before
    const identity = findResponder(custody, row.id)
    if (identity === null) return null
    const responder = { issuer: row.id, notAfterMs: row.notAfterMs, identity }
    opened.set(row.id, responder)
    return responder
  }

  return async (asked) => {
    if (asked.hash === null) return null
    const name = `${asked.hash}/${asked.issuerNameHash}/${asked.issuerKeyHash}`
    const found = known(name)
    if (found !== null) return found
    if (looking === null && clock.monotonicMs() - lookedAtMs < lookEveryMs) return null
    // What is asked at the same time waits for the same look.
    looking ??= look().finally(() => {
      looking = null
    })
    await looking
    return known(name)
  }
}

const namesOf = (row: IssuerRow): readonly string[] => {
  const { subjectName, spki } = certificateOf(row)
  return (['sha1', 'sha256'] as const).map(
    (algorithm) => `${algorithm}/${hash(algorithm, subjectName, 'hex')}/${keyHash(spki, algorithm)}`,
  )
}
