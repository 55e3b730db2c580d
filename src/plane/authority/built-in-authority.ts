// The built-in certificate authority (ruling 1): signs leaves, and looks after itself.

import { readOf } from '#domain/core/change.ts'
import type { SigningOrder } from '#domain/core/certificate.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { isRefusal, refuse } from '#domain/core/refusal.ts'
import { toPem } from '#pki/pem.ts'
import { isoTime } from '#platform/clock.ts'
import { keyMissing } from '#plane/keys/key-inventory.ts'
import type { Core } from '#plane/core/core.ts'
import type { Authority, ServerIdentity } from './authority.ts'
import { longestLeafNow, lookAgain, type AuthorityParts, type AuthorityState } from './authority-state.ts'
import { agingNow, authorityView, lostNow, journalAging } from './authority-view.ts'
import { certificateOf, signerFrom, signLeaf } from './ca-signer.ts'
import { dropAnsweredRequests, importIntermediate, requestIntermediate } from './ceremony.ts'
import { bookOf, authorityActor, type IssuerBook } from './issuer-book.ts'
import { replaceIssuer, replaceWhatIsDue } from './replace-issuer.ts'
import { completeResponder } from './responder.ts'
import {
  findServerCertificate,
  renewServerCertificate,
  type HeldServerCertificate,
  type ServerKind,
} from './server-identity.ts'
import { signTogether } from './sign-together.ts'
import { dropOrphans } from './take-into-service.ts'
import { withdrawIssuer } from './withdraw-issuer.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { takeTurns } from '#plane/core/turns.ts'

/** How often a plane looks at what others have replaced, while its own issuer does not fit what is ordered. */
const lookEveryMs = 1000

/** The domain has to have an authority already (create-authority.ts). */
export const openAuthority = async (core: Core, given: Omit<AuthorityParts, 'core'>): Promise<Authority> => {
  const parts = { ...given, core }
  const inTurn = takeTurns()
  const listeners: ((identity: ServerIdentity) => void)[] = []
  const anchors = rememberAnchors()
  const state = await openState(parts)

  const renewServer = async (cause: 'if due' | 'issuer replaced'): Promise<void> => {
    const kind = serverKind(state.book)
    const because = state.server !== null && isOfWithdrawn(state.book, state.server) ? 'issuer replaced' : cause
    const serving = { signer: state.signer, held: state.server, cause: because }
    const renewed = await renewServerCertificate(parts, kind, serving)
    if (renewed === null) return
    state.server = renewed
    for (const listener of listeners) listener(renewed.identity)
  }
  const seeWhatOthersDid = async (): Promise<void> => {
    const before = state.signer
    await lookAgain(parts, state)
    await replaceWhatIsDue(parts, state, state.longestLeafMs, 'running')
    await renewServer(state.signer?.row.id === before?.row.id ? 'if due' : 'issuer replaced')
  }
  const identityNow = (): ServerIdentity => {
    if (state.server === null) throw whyNoServer(parts, state)
    return state.server.identity
  }
  await renewServer('if due').catch((error: unknown) => {
    // A certificate that has aged is better than a plane that does not start: it still lets an operator in.
    if (state.server === null) throw error
    parts.core.log.error({ err: error }, 'the server certificate could not be renewed')
  })
  identityNow()
  parts.names.onChange(() => {
    inTurn(() => renewServer('if due')).catch((error: unknown) => cannotLook(parts, error))
  })
  // `maintain` sees what happened since the book was read, and what the feed did not bring.
  const justWithdrawn = new Set<IssuerId>()
  parts.core.feed.subscribe('authority', ({ origin, writes }) => {
    // Before the book is read again: an agent that gets its trust in this turn has to get the new one.
    for (const write of writes) {
      if (write.put === 'issuer' && write.value.compromisedAtMs !== null) justWithdrawn.add(write.value.id)
    }
    if (origin === 'here' || !writes.some(({ put }) => put === 'issuer')) return
    inTurn(seeWhatOthersDid).catch((error: unknown) => cannotLook(parts, error))
  })

  const together = signTogether(core.timers)
  const fits = ({ issuedAtMs, lifetimeMs }: SigningOrder): boolean =>
    state.signer !== null && issuedAtMs + lifetimeMs <= state.signer.row.notAfterMs
  let lookedAtMs = -lookEveryMs
  const makeRoomFor = async (order: SigningOrder): Promise<void> => {
    const nowMs = parts.core.clock.monotonicMs()
    if (parts.core.store.sealedKeys !== null && nowMs - lookedAtMs >= lookEveryMs) {
      lookedAtMs = nowMs
      await lookAgain(parts, state)
    }
    if (fits(order)) return
    const longestMs = Math.max(state.longestLeafMs, order.lifetimeMs)
    if ((await replaceWhatIsDue(parts, state, longestMs, 'running')) === 'left-to-leader')
      throw new Error('the issuing CA does not fit any more, and the plane that leads has not replaced it yet')
  }

  return {
    async sign(order) {
      if (!fits(order)) await inTurn(() => makeRoomFor(order))
      if (state.signer === null) throw new Error('no issuing CA can sign now')
      const signer = { ...state.signer, key: together(state.signer.key) }
      return signLeaf(signer, order, parts.core.random, parts.options.statusUrl ?? null)
    },
    chainOf(issuer) {
      // Another plane made it a moment ago: a repeated call finds it.
      if (state.book.find(issuer) === null) {
        inTurn(() => lookAgain(parts, state)).catch((error: unknown) => cannotLook(parts, error))
      }
      return state.book.pathOf(issuer).intermediates
    },
    rootOf: (issuer) => toPem('CERTIFICATE', Buffer.from(state.book.pathOf(issuer).root.der, 'base64')),
    roots: () => anchors(state.book).pems,
    // Its roots are among those that nodes verify the plane by.
    issuerRoots: () => ({ revision: 0, roots: [] }),
    withdrawnIssuers() {
      const nowMs = parts.core.clock.nowMs()
      const stored = state.book.withdrawn.filter(({ notAfterMs }) => notAfterMs > nowMs).map(({ id }) => id)
      const justNow = [...justWithdrawn].filter((id) => state.book.find(id)?.value.compromisedAtMs === null)
      return [...justNow, ...stored, ...parts.programs.withdrawnIssuers()]
    },
    rowRead: (issuer) => readOf('issuer', issuer, state.book.find(issuer)),
    lookAgain: () => inTurn(seeWhatOthersDid),
    rootFingerprint: () => anchors(state.book).fingerprint,
    longestLeafMs: () => longestLeafNow(parts, state),

    serverIdentity: identityNow,
    onServerIdentity: (run) => void listeners.push(run),
    maintain: (longestLeafMs) =>
      inTurn(async () => {
        state.longestLeafMs = Math.max(longestLeafMs, parts.options.serverLifetimeMs)
        if (parts.core.store.sealedKeys !== null) await lookAgain(parts, state)
        state.rootOnline = parts.custody.has({ role: 'root', id: state.book.root.id })
        await replaceWhatIsDue(parts, state, state.longestLeafMs, 'running')
        await completeResponder(parts, state.signer)
        await journalAging(parts, state)
        const looked = await parts.names.look().then(
          () => null,
          (error: unknown) => ({ error }),
        )
        // Whatever the look finds: without a certificate that is good neither a node nor an operator gets in.
        await renewServer('if due').catch((error: unknown) => {
          if (looked === null) throw error
          // What the look has found is what ends a start, and often the cause of this.
          parts.core.log.error({ err: error }, 'the server certificate could not be renewed')
        })
        if (looked !== null) throw looked.error
      }),
    view: () => authorityView(parts, state),
    aging: () => agingNow(parts, state),
    lost: () => lostNow(parts, state),

    rotate: (by) =>
      inTurn(async () => {
        const wanted = {
          ...inAnyCase,
          role: 'issuing',
          longestLeafMs: state.longestLeafMs,
          why: 'asked for',
          by,
        } as const
        const outcome = await replaceIssuer(parts, state, { ...wanted, everywhere: true })
        if (outcome === 'above-offline') return refuse('CA_ROOT_OFFLINE')
        await renewServer('issuer replaced')
      }),
    withdraw(wanted) {
      const other = [parts.programs, parts.workers].find((trust) => trust.has(wanted.issuer))
      if (other !== undefined) return other.withdraw(wanted)
      return inTurn(async () => {
        const outcome = await parts.core.store.exclusively(() => withdrawIssuer(parts, state, wanted))
        if (!isRefusal(outcome)) await renewServer('if due')
        return outcome
      })
    },
    request: (by, wanted = 'runtime') =>
      inTurn(() => parts.core.store.exclusively(() => requestIntermediate(parts, by, wanted))),
    importIssued: (certificatePem, by) =>
      inTurn(async () => {
        const outcome = await parts.core.store.exclusively(async () => {
          await lookAgain(parts, state)
          return importIntermediate(parts, state, certificatePem, by)
        })
        if (isRefusal(outcome)) return outcome
        await startMemoryIssuer(parts, state)
        await renewServer('issuer replaced')
      }),
  }
}

const whenOver = {
  root: 'the domain has ended: make another, and enroll its machines there',
  'issuing CA':
    'put the key of the root back (into keys/ of the data folder, or with PostgreSQL into the table sealed_key): the plane then makes a new issuing CA',
}

/** A replica keeps no server certificate over a restart, so that it cannot fall back on one that has expired. */
const whyNoServer = ({ core: { clock } }: AuthorityParts, { book }: AuthorityState): StoreRefused => {
  const nowMs = clock.nowMs()
  const over = [book.root, book.issuing].find((one) => one !== null && one.notAfterMs <= nowMs)
  if (over === undefined || over === null) return keyMissing({ role: 'issuing', id: book.issuing?.id ?? null })
  const what = over.role === 'root' ? 'root' : 'issuing CA'
  return new StoreRefused(
    'AUTHORITY_EXPIRED',
    `the clock of this machine says ${isoTime(nowMs)}, and the ${what} of this domain ended ${isoTime(over.notAfterMs)}`,
    `If the clock is wrong, set it and start the plane: timedatectl set-ntp true. If it is right, ${whenOver[what]}`,
  )
}

const inAnyCase = { isDue: null, fencingToken: null, everywhere: false }

const cannotLook = ({ core: { log } }: AuthorityParts, error: unknown): void =>
  log.warn({ err: error }, 'the authorities in the store could not be looked at; it is tried again')

const openState = async (parts: AuthorityParts): Promise<AuthorityState> => {
  const { store } = parts.core
  const { custody, options } = parts
  const book = await store.exclusively(async () => {
    await custody.refresh()
    const found = bookOf(await store.issuers())
    if (options.issuerKey === 'memory' && certificateOf(found.root).pathLen === 1) {
      throw new Error('the root of this domain has path length 1, which leaves no room for issuers with keys in memory')
    }
    // Opened once at start, so that a wrong sealing key is noticed now and not in years.
    signerFrom(custody, found.root)
    await dropOrphans(custody, found)
    await dropAnsweredRequests(parts, found)
    return found
  })
  const profiles = await store.profiles()
  const state: AuthorityState = {
    book,
    rootOnline: custody.has({ role: 'root', id: book.root.id }),
    signer: book.issuing === null || options.issuerKey === 'memory' ? null : signerFrom(custody, book.issuing),
    server: await findServerCertificate(parts, serverKind(book)),
    longestLeafMs: Math.max(options.serverLifetimeMs, ...profiles.map(({ value }) => value.certificate.lifetimeMs)),
    spareKey: null,
    agingJournaledAtMs: null,
  }
  await replaceWhatIsDue(parts, state, state.longestLeafMs, 'starting')
  await completeResponder(parts, state.signer)
  return state
}

const serverKind = (book: IssuerBook): ServerKind => ({
  purpose: 'runtime',
  above(issuer) {
    const row = book.find(issuer)?.value
    // A certificate that a thief of the key could have signed is not presented.
    if (row === undefined || row.compromisedAtMs !== null) return null
    const path = book.pathOf(issuer)
    return [...path.intermediates, Buffer.from(path.root.der, 'base64')]
  },
})

const isOfWithdrawn = (book: IssuerBook, { name }: HeldServerCertificate): boolean =>
  book.withdrawn.some(({ id }) => name.id.startsWith(`${id}.`))

type Anchors = { readonly pems: readonly string[]; readonly fingerprint: string }

/** Every answer to a node carries the roots, so they are written out once a book and not once an answer. */
const rememberAnchors = (): ((book: IssuerBook) => Anchors) => {
  let known: { readonly book: IssuerBook; readonly anchors: Anchors } | null = null
  return (book) => {
    if (known?.book === book) return known.anchors
    const pems = book.roots.map(({ der }) => toPem('CERTIFICATE', Buffer.from(der, 'base64')))
    const anchors = { pems, fingerprint: certificateOf(book.root).sha256 }
    known = { book, anchors }
    return anchors
  }
}

/** After an import, so that leaves hang under the new domain CA at once. */
const startMemoryIssuer = async (parts: AuthorityParts, state: AuthorityState): Promise<void> => {
  if (parts.options.issuerKey !== 'memory') return
  const wanted = { ...inAnyCase, role: 'issuing', longestLeafMs: state.longestLeafMs, by: authorityActor } as const
  await replaceIssuer(parts, state, { ...wanted, why: 'new domain CA' })
}
