// The names that this plane serves: those of its configuration, and those that it served before and that a node may still need.
// A name is claimed in the commit of the certificate that carries it (domain/programs/served-names.ts).

import type { ServerNames } from '#domain/ca/server-certificate.ts'
import { nextVersion, type ChangePart } from '#domain/core/change.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { bareName, claimedName, wildcardOver, type NameClaim, type PlaneHolder } from '#domain/programs/name-claim.ts'
import {
  certificateNames,
  decideCalled,
  decideGiveBack,
  isInCertificates,
  isOfPlane,
  isInTheWay,
  returnedAtMs,
  takeNames,
  type NameHeld,
  type ServedClaim,
} from '#domain/programs/served-names.ts'
import { commitDecision, commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { isoTime } from '#platform/clock.ts'
import { bookTries } from './authority-state.ts'
import { authorityActor } from './issuer-book.ts'

export type ServedNames = {
  /** What the certificates of this plane are to have. */
  wanted(): ServerNames
  /** A name in the configuration of this plane, by whichever spelling. */
  isConfigured(host: string): boolean
  /** A listener or a URL of this plane has it as its address. */
  listensAt(host: string): boolean
  /** When the plane came back to the name in its URLs, after it had been called by another; null: it has not. */
  returnedAtMs(): number | null
  /** In certificates and not in the configuration. */
  kept(): readonly ServedClaim[]
  /** Reads the claims again, and claims what the configuration has and no commit has claimed yet. The first one ends a start. */
  look(): Promise<void>
  /** `wanted` is another than before. */
  onChange(run: () => void): void
  /**
   * What makes the wanted names the plane's, for the commit of the certificate that carries them. One that was dropped since they
   * were wanted, and that the configuration does not have, is not taken back: what is wanted has to be asked again.
   */
  claimPart(names: ServerNames): Promise<ChangePart | 'names have changed'>
}

export type NamesConfig = {
  /** Of certificates. */
  readonly names: ServerNames
  /** In the URLs that nodes get. */
  readonly host: string
  /** Further hosts of listeners and URLs of the plane. */
  readonly addresses: readonly string[]
}

type NamesCore = Pick<Core, 'store' | 'feed' | 'clock' | 'log'>

type Wanted = { readonly name: string; readonly use: PlaneHolder['use'] }

/** Throws StoreRefused where a name of the configuration is a node's, or a leaf still carries it: nothing was changed then. */
export const openServedNames = async (core: NamesCore, config: NamesConfig): Promise<ServedNames> => {
  const { store, feed, log } = core
  const ofCertificates = namesIn(config.names)
  const ofListeners = [...new Set(config.addresses.map(claimedName))].filter((name) => !ofCertificates.includes(name))
  const ofUrls = claimedName(config.host)
  const listeners: (() => void)[] = []
  let isStarted = false
  let claims = await planeClaims(core)
  /** By name, the version that its row has if the last change that was made here for it is committed. */
  const offered = new Map<string, number>()
  /** By name, the version of its row that was committed here: of others it is not known who serves them. */
  const taken = new Map<string, number>()

  const kept = (): readonly ServedClaim[] =>
    claims.filter((claim) => isInCertificates(claim) && !ofCertificates.includes(claim.name))
  const keptNames = (): string =>
    kept()
      .map(({ name }) => name)
      .join()
  const readAgain = async (): Promise<void> => {
    const before = keptNames()
    claims = await planeClaims(core)
    if (keptNames() !== before) for (const run of listeners) run()
  }
  const unclaimed = (names: readonly Wanted[]): readonly Wanted[] =>
    names.filter(({ name, use }) => !claims.some((claim) => claim.name === name && serves(claim, use)))

  const taking = async (names: readonly Wanted[]) => {
    const rows = await Promise.all(names.map(({ name }) => store.get('name-claim', name)))
    const fresh = names.filter((_, at) => rows[at]?.value.holder.kind !== 'plane').map(({ name }) => name)
    const below = await claimsBelow(core, fresh)
    const outcome = takeNames(
      names.map((wanted, at) => ({
        ...wanted,
        named: wanted.name === ofUrls,
        row: rows[at] ?? null,
        below: below.get(wanted.name) ?? null,
      })),
      authorityActor,
      core.clock.nowMs(),
    )
    if (outcome.kind === 'part') for (const read of outcome.part.reads) offered.set(read.key, nextVersion(read))
    return outcome
  }
  const take = (names: readonly Wanted[]): Promise<void> =>
    retryLostRaces(bookTries, async () => {
      const outcome = await taking(names)
      if (outcome.kind === 'held') throw nameHeld(outcome)
      const [first, ...others] = outcome.part.entries
      if (first === undefined) return
      const change = { ...outcome.part, entries: [first, ...others] } as const
      if ((await commitOnce(core, change)) === 'lost-race') return 'lost-race'
    })

  /**
   * Left to the plane, a wildcard that it is refused would keep the node that has a name below it from every later leaf. Only one that
   * was taken here: another replica may serve the others.
   */
  const giveBack = async (name: string, why: string): Promise<void> => {
    await commitDecision(core, async () => {
      const row = await store.get('name-claim', name)
      if (row === null || row.version !== taken.get(name)) return { kind: 'unchanged' } as const
      return decideGiveBack({ row, why, by: authorityActor, nowMs: core.clock.nowMs() })
    })
  }

  /** Not at every look: replicas with different names would call the plane by them in turns. */
  const endStart = async (): Promise<void> => {
    if (isStarted) return
    // A node may have got a name between the look for one below a wildcard and the commit that took the wildcard. After that none does.
    const refused = [...(await claimsBelow(core, ofCertificates))].map(([name, claim]) => {
      return { name, error: nameHeld({ kind: 'held', name, claim }) }
    })
    for (const { name, error } of refused) await giveBack(name, error.message)
    const [first] = refused
    if (first !== undefined) throw first.error
    const done = await commitDecision(core, async () => {
      const others = (await planeClaims(core)).filter(({ name }) => name !== ofUrls)
      const row = await store.get('name-claim', ofUrls)
      if (row === null || !isOfPlane(row.value)) return { kind: 'unchanged' } as const
      const mine = { ...row, value: row.value }
      const facts = { row: mine, others, configured: ofCertificates }
      return decideCalled({ ...facts, by: authorityActor, nowMs: core.clock.nowMs() })
    })
    isStarted = !isRefusal(done)
    if (done.kind === 'committed') claims = await planeClaims(core)
  }

  const asCertificateNames = ofCertificates.map((name): Wanted => ({ name, use: 'certificate' }))
  const asAddresses = ofListeners.map((name): Wanted => ({ name, use: 'address' }))
  if (isReady(core)) {
    // Claimed with the certificate; looked at now, because an older certificate would let the plane start without it.
    const first = await taking(unclaimed(asCertificateNames))
    if (first.kind === 'held') throw nameHeld(first)
    await take(unclaimed(asAddresses))
    claims = await planeClaims(core)
  }
  feed.subscribe('served names', ({ origin, writes }) => {
    const written = writes.flatMap((write) => (write.put === 'name-claim' && isOfPlane(write.value) ? write.value : []))
    if (written.length === 0) return
    for (const { name } of written) {
      const version = offered.get(name)
      if (origin === 'here' && version !== undefined) taken.set(name, version)
    }
    readAgain().catch((error: unknown) => log.warn({ err: error }, 'the names of the plane could not be read again'))
  })

  return {
    wanted() {
      return certificateNames([...ofCertificates, ...kept().map(({ name }) => name)])
    },
    isConfigured: (host) => ofCertificates.includes(claimedName(host)),
    listensAt: (host) => ofListeners.includes(claimedName(host)),
    returnedAtMs() {
      const claim = claims.find(({ name }) => name === ofUrls)
      return claim === undefined ? null : returnedAtMs(claim)
    },
    kept,
    async look() {
      if (!isReady(core)) return
      await readAgain()
      await take(unclaimed([...asCertificateNames, ...asAddresses]))
      await endStart()
    },
    onChange: (run) => void listeners.push(run),
    async claimPart(names) {
      if (!isReady(core)) return {}
      const all = namesIn(names)
      const outcome = await taking(all.map((name) => ({ name, use: 'certificate' })))
      if (outcome.kind === 'held') throw nameHeld(outcome)
      const takesBack = outcome.part.writes.some(
        (write) => write.put === 'name-claim' && !ofCertificates.includes(write.value.name),
      )
      if (!takesBack) return outcome.part
      await readAgain()
      return 'names have changed'
    },
  }
}

/** Replicas of 0.3 have no such rows. What they served is claimed by the step that ends the upgrade. */
const isReady = ({ store }: NamesCore): boolean => store.unfinishedUpgrade() === null

const namesIn = ({ dns, ip }: ServerNames): readonly string[] => [...new Set([...dns, ...ip].map(claimedName))]

const serves = ({ holder }: ServedClaim, use: PlaneHolder['use']): boolean =>
  holder.dropped === null && (holder.use === 'certificate' || use === 'address')

const planeClaims = async ({ store }: NamesCore): Promise<readonly ServedClaim[]> => {
  const all = await Array.fromAsync(everyRow(store, 'name-claim', ({ name }) => name, { where: { holder: 'plane' } }))
  return all.filter(isOfPlane)
}

/** By wildcard among these names, a name below it that the plane must not serve. Few planes have a wildcard. */
const claimsBelow = async (
  { store, clock }: NamesCore,
  names: readonly string[],
): Promise<ReadonlyMap<string, NameClaim>> => {
  const found = new Map<string, NameClaim>()
  const asked = new Set(names.filter((name) => name.startsWith('dns:*.')))
  if (asked.size === 0) return found
  const nowMs = clock.nowMs()
  for (const holder of ['node', 'nobody'] satisfies NameClaim['holder']['kind'][]) {
    for await (const claim of everyRow(store, 'name-claim', ({ name }) => name, { where: { holder } })) {
      const over = wildcardOver(claim.name)
      if (over !== null && asked.has(over) && isInTheWay(claim, nowMs)) found.set(over, claim)
    }
  }
  return found
}

const nameHeld = ({ name, claim: { name: held, holder, carriedUntilMs } }: NameHeld): StoreRefused => {
  const host = bareName(held)
  const covered = held === name ? host : `${host}, which ${bareName(name)} covers,`
  return holder.kind === 'node'
    ? new StoreRefused(
        'NAME_HELD',
        `${covered} is registered for node ${holder.node}, whose programs have certificates for it: the plane cannot have the same name`,
        `Take it from the node: start the plane without that name, then muster node names remove ${holder.node} ${host}; or give the plane another one: --server-name NAME`,
      )
    : new StoreRefused(
        'NAME_HELD',
        `a program was given a certificate for ${covered} that may be accepted until ${isoTime(carriedUntilMs)}: its holder could pass for the plane until then`,
        'Wait until then, or give the plane another name: --server-name NAME',
      )
}
