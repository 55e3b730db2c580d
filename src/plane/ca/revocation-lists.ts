// The revocation lists of the issuers whose keys are here, made when they are requested: every denial that this plane knows by
// then is in it. Nothing is read or kept until the first request.

import { certificateKey, type CertificateRow, type Denial, everySlot, slotsOf } from '#domain/core/certificate.ts'
import { mayHaveRevoked, revokedBy, revokedByNode, tellsMore, type Revocation } from '#domain/ca/certificate-status.ts'
import type { IssuerId, Node } from '#domain/core/node.ts'
import {
  deltaList,
  fullList,
  isListed,
  type ListedCertificate,
  type RevocationList,
} from '#domain/ca/revocation-list.ts'
import { certificatesOf, everyNode, everyRow } from '#plane/core/pages.ts'
import { wholeSecondMs } from '#pki/der-time.ts'
import { sleep } from '#platform/timers.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { findListSigner, hasListKey, signsLists, type ListSigner } from '#plane/authority/list-signer.ts'
import { takeTurns } from '#plane/core/turns.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Core } from '#plane/core/core.ts'

export type PublishedList = Omit<RevocationList, 'entries'> & {
  readonly issuer: IssuerId
  readonly der: Uint8Array
  readonly entries: number
}

export type ListKind = 'full' | 'delta'

export type RevocationLists = {
  /** Null: no issuer with a key of its own here has that id. */
  list(issuer: IssuerId, kind: ListKind): Promise<PublishedList | null>
  /** Periodically: adds denials since the last request, and removes what has long expired. */
  settle(): Promise<void>
}

type ListCore = Pick<Core, 'store' | 'feed' | 'clock' | 'timers'>

export type RevocationListParts = {
  readonly custody: KeyCustody
  /** Never set ahead by mistake: a list from the future would have to be outlived. */
  readonly steadyMs: () => number
  /** Never ahead of the real time, however wrong the clock is: what is let go of by it is not missed. */
  readonly livedMs: () => Promise<number>
  /** The URL of the delta list of an issuer; null: not named. */
  readonly deltaUrlOf: (issuer: IssuerId) => string | null
  readonly onBuilt: (kind: ListKind) => void
}

type Issued = {
  readonly denied: Map<string, ListedCertificate>
  /** Something was denied since a list was last made. */
  changed: boolean
  /** The least number the next list of each kind may have: both kinds are numbered together. */
  least: Readonly<Record<ListKind, number>>
  /** As long as nothing has changed. */
  readonly made: Map<ListKind, PublishedList>
  madeAtMs: number
}

/** A storm of denials does not make a list for each of them, however often lists are requested. */
const apartMs = 200

export const openRevocationLists = (core: ListCore, parts: RevocationListParts): RevocationLists => {
  const { store, feed, clock, timers } = core
  const { custody, steadyMs } = parts
  const byIssuer = new Map<IssuerId, Issued>()
  /** Received and not added yet; null: no list was requested yet. */
  let pending: Denial[] | null = null
  let loaded = false
  let walked = false
  const signers = new Map<IssuerId, ListSigner>()
  const inTurn = takeTurns()

  const of = (issuer: IssuerId): Issued => {
    const found = byIssuer.get(issuer)
    if (found !== undefined) return found
    const fresh: Issued = {
      denied: new Map(),
      changed: false,
      least: { full: 0, delta: 0 },
      made: new Map(),
      madeAtMs: -Infinity,
    }
    byIssuer.set(issuer, fresh)
    return fresh
  }
  const add = ({ issuer, serial, notAfterMs }: CertificateRow, revocation: Revocation): void => {
    const issued = of(issuer)
    const listed = { serial, notAfterMs, ...revocation }
    const before = issued.denied.get(serial)
    if (before !== undefined && !tellsMore(listed, before)) return
    issued.denied.set(serial, listed)
    if (issued.changed) return
    issued.changed = true
    issued.made.clear()
    const next = Math.max(issued.least.full, issued.least.delta) + 1
    issued.least = { full: next, delta: next }
  }
  const listen = (): Denial[] => {
    const denials: Denial[] = []
    feed.subscribe('revocation lists', ({ writes }) => {
      for (const write of writes) if (write.put === 'denial') denials.push(write.value)
    })
    return denials
  }
  const takeIn = async (): Promise<void> => {
    // Followed before the denials are loaded: a denial that is committed in between is seen twice, and never missed.
    pending ??= listen()
    if (!loaded) pending.push(...(await store.denials()))
    loaded = true
    while (pending.length > 0) {
      const denial = pending[0] as Denial
      for await (const row of certificatesDeniedBy(store, denial)) add(row, revokedBy(denial, row))
      // Only now: a failure in between is tried again.
      pending.shift()
    }
    if (!walked) await addFromNodes()
    walked = true
  }
  /** After the denials, which know the reason: what they do not name and a node's own row or a banned key revokes. */
  const addFromNodes = async (): Promise<void> => {
    const bans = await bannedKeys(store)
    for await (const { node, row } of certificatesOfNodes(store, bans)) {
      const bannedAtMs = bans.get(row.spki)
      const byBan = bannedAtMs === undefined ? null : ({ atMs: bannedAtMs, reason: 'unspecified' } as const)
      const revocation = revokedByNode(row, node) ?? byBan
      if (revocation !== null && !of(row.issuer).denied.has(row.serial)) add(row, revocation)
    }
  }

  /** OCSP goes on answering for what it has signed. */
  const forgetSigner = (issuer: IssuerId): null => {
    signers.delete(issuer)
    return null
  }
  const signerOf = async (issuer: IssuerId): Promise<ListSigner | null> => {
    const row = (await store.get('issuer', issuer))?.value
    if (row === undefined || !signsLists(row) || row.notAfterMs <= steadyMs()) return forgetSigner(issuer)
    if (!hasListKey(custody, row)) await custody.refresh()
    if (!hasListKey(custody, row)) return forgetSigner(issuer)
    const known = signers.get(issuer)
    if (known !== undefined) return known
    const found = findListSigner(custody, row)
    if (found !== null) signers.set(issuer, found)
    return found
  }
  const publish = async (signer: ListSigner, issued: Issued, kind: ListKind): Promise<PublishedList> => {
    const { full, delta } = issued.least
    const leastNumber = kind === 'full' ? full : Math.max(full, delta)
    const facts = { denied: [...issued.denied.values()], nowMs: steadyMs(), leastNumber }
    const list = (kind === 'full' ? fullList : deltaList)(facts)
    const before = issued.made.get(kind)
    if (before?.number === list.number && before.nextUpdateMs === list.nextUpdateMs) return before
    const der = await signed(parts, signer, list)
    const made = { ...list, issuer: signer.issuer, entries: list.entries.length, der }
    issued.changed = false
    issued.least = { ...issued.least, [kind]: list.number }
    issued.made.set(kind, made)
    issued.madeAtMs = clock.monotonicMs()
    parts.onBuilt(kind)
    return made
  }

  return {
    list: (issuer, kind) =>
      inTurn(async () => {
        const signer = await signerOf(issuer)
        if (signer === null) return null
        const issued = of(issuer)
        const tooSoonMs = issued.madeAtMs + apartMs - clock.monotonicMs()
        if (tooSoonMs > 0 && pending !== null && pending.length > 0) await sleep(timers, tooSoonMs)
        await takeIn()
        return publish(signer, issued, kind)
      }),
    settle: () =>
      inTurn(async () => {
        // A removed key is dropped from memory too, with or without a request.
        for (const issuer of [...signers.keys()]) await signerOf(issuer)
        if (pending === null) return
        await takeIn()
        const nowMs = await parts.livedMs()
        for (const { denied } of byIssuer.values())
          for (const [serial, one] of denied) if (!isListed(one, nowMs)) denied.delete(serial)
      }),
  }
}

const signed = (
  parts: RevocationListParts,
  { issuer, sign }: ListSigner,
  list: RevocationList,
): ReturnType<ListSigner['sign']> =>
  sign({ ...list, thisUpdateMs: wholeSecondMs(list.thisUpdateMs), freshestUrl: parts.deltaUrlOf(issuer) })

/** In the store, which those are not whose end is long past. */
const certificatesDeniedBy = async function* (store: Store, denial: Denial): AsyncGenerator<CertificateRow> {
  if (denial.kind === 'certificate') {
    const found = await store.get('certificate', certificateKey(denial.issuer, denial.serial))
    if (found !== null) yield found.value
    return
  }
  // Every list of a withdrawn issuer would be signed by the key that is not to be trusted.
  if (denial.kind === 'issuer') return
  for await (const row of certificatesOf(store, denial.node)) {
    if (row.subject.kind === 'node' && row.subject.epoch === denial.epoch) yield row
  }
}

/** Of the nodes whose own row may revoke one, or whose key is banned. The others, nearly all, cost no question. */
const certificatesOfNodes = async function* (
  store: Store,
  bans: ReadonlyMap<string, number>,
): AsyncGenerator<{ readonly node: Node; readonly row: CertificateRow }> {
  for await (const node of everyNode(store)) {
    const slots = slotsOf(node)
    const hasBanned = slots !== null && everySlot(slots).some(({ spki }) => bans.has(spki))
    if (!hasBanned && !mayHaveRevoked(node)) continue
    for await (const row of certificatesOf(store, node.id)) yield { node, row }
  }
}

/** Since when, by the hash of the key. */
const bannedKeys = async (store: Store): Promise<ReadonlyMap<string, number>> => {
  const bans = new Map<string, number>()
  for await (const { spki, atMs } of everyRow(store, 'key-ban', (ban) => ban.spki)) bans.set(spki, atMs)
  return bans
}
