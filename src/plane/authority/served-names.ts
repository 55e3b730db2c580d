// The names that this plane serves: those of its configuration, and those that it served before and that a node may still need.
// A name is claimed in the commit of the certificate that carries it (domain/programs/served-names.ts).

import type { ServerNames } from '#domain/ca/server-certificate.ts'
import type { ChangePart, Row } from '#domain/core/change.ts'
import type { NodeId } from '#domain/core/node.ts'
import { bareName, claimedName, wildcardOver, type NameClaim, type PlaneHolder } from '#domain/programs/name-claim.ts'
import { programKey } from '#domain/programs/program.ts'
import {
  certificateNames,
  isInCertificates,
  isOfPlane,
  takeNames,
  type NameHeld,
  type ServedClaim,
} from '#domain/programs/served-names.ts'
import { commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { Core } from '#plane/core/core.ts'
import { everyRow } from '#plane/core/pages.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { bookTries } from './authority-state.ts'
import { authorityActor } from './issuer-book.ts'

export type ServedNames = {
  /** What the certificates of this plane are to have. */
  wanted(): ServerNames
  /** A name in the configuration of this plane, by whichever spelling. */
  isConfigured(host: string): boolean
  /** A listener or a URL of this plane has it as its address. */
  listensAt(host: string): boolean
  /** In certificates and not in the configuration. */
  kept(): readonly ServedClaim[]
  /** Reads the claims again, and claims what the configuration has and no commit has claimed yet. */
  look(): Promise<void>
  /** `wanted` is another than before. */
  onChange(run: () => void): void
  /** What makes the wanted names the plane's, for the commit of the certificate that carries them. */
  claimPart(names: ServerNames): Promise<ChangePart>
}

export type NamesConfig = {
  /** Of certificates. */
  readonly names: ServerNames
  /** Hosts that listeners and URLs of the plane have besides. */
  readonly addresses: readonly string[]
}

type NamesCore = Pick<Core, 'store' | 'feed' | 'clock' | 'log'>

type Wanted = { readonly name: string; readonly use: PlaneHolder['use'] }

/** Throws StoreRefused where a name of the configuration belongs to a node: nothing was changed then. */
export const openServedNames = async (core: NamesCore, config: NamesConfig): Promise<ServedNames> => {
  const { store, feed, log } = core
  const ofCertificates = namesIn(config.names)
  const ofListeners = [...new Set(config.addresses.map(claimedName))].filter((name) => !ofCertificates.includes(name))
  const listeners: (() => void)[] = []
  let claims = await planeClaims(core)

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
    const carried = await carriers(core, names)
    const rows = await Promise.all(names.map(({ name }) => store.get('name-claim', name)))
    return takeNames(
      names.map((wanted, at) => ({ ...wanted, row: rows[at] ?? null, carriedBy: carried.get(wanted.name) ?? null })),
      authorityActor,
      core.clock.nowMs(),
    )
  }
  const take = (names: readonly Wanted[]): Promise<void> =>
    retryLostRaces(bookTries, async () => {
      const taken = await taking(names)
      if (taken.kind === 'held') throw heldByNode(taken)
      const [first, ...others] = taken.part.entries
      if (first === undefined) return
      if ((await commitOnce(core, { ...taken.part, entries: [first, ...others] })) === 'lost-race') return 'lost-race'
    })

  const asCertificateNames = ofCertificates.map((name): Wanted => ({ name, use: 'certificate' }))
  const asAddresses = ofListeners.map((name): Wanted => ({ name, use: 'address' }))
  if (isReady(core)) {
    // Claimed with the certificate; looked at now, because an older certificate would let the plane start without it.
    const first = await taking(unclaimed(asCertificateNames))
    if (first.kind === 'held') throw heldByNode(first)
    await take(unclaimed(asAddresses))
    claims = await planeClaims(core)
  }
  feed.subscribe('served names', ({ writes }) => {
    if (!writes.some((write) => write.put === 'name-claim' && isOfPlane(write.value))) return
    readAgain().catch((error: unknown) => log.warn({ err: error }, 'the names of the plane could not be read again'))
  })

  return {
    wanted() {
      return certificateNames([...ofCertificates, ...kept().map(({ name }) => name)])
    },
    isConfigured: (host) => ofCertificates.includes(claimedName(host)),
    listensAt: (host) => ofListeners.includes(claimedName(host)),
    kept,
    async look() {
      if (!isReady(core)) return
      await readAgain()
      await take(unclaimed([...asCertificateNames, ...asAddresses]))
    },
    onChange: (run) => void listeners.push(run),
    async claimPart(names) {
      if (!isReady(core)) return {}
      const taken = await taking(namesIn(names).map((name) => ({ name, use: 'certificate' })))
      if (taken.kind === 'held') throw heldByNode(taken)
      return taken.part
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

/** Which nodes have a name below one of these wildcards, or programs with leaves for one of these names that have not expired. */
const carriers = async (core: NamesCore, names: readonly Wanted[]): Promise<ReadonlyMap<string, NodeId>> => {
  const found = new Map<string, NodeId>()
  const asked = new Set<string>()
  for (const { name } of names) {
    const row: Row<NameClaim> | null = await core.store.get('name-claim', name)
    if (row === null || row.value.holder.kind === 'nobody') asked.add(name)
  }
  if (asked.size === 0) return found
  if ([...asked].some((name) => name.startsWith('dns:*.'))) {
    for await (const { name, holder } of everyRow(core.store, 'name-claim', (one) => one.name, {
      where: { holder: 'node' },
    })) {
      const over = wildcardOver(name)
      if (over !== null && asked.has(over) && holder.kind === 'node') found.set(over, holder.node)
    }
  }
  const nowMs = core.clock.nowMs()
  for await (const { node, current, former } of everyRow(core.store, 'program', programKey)) {
    for (const leaf of [current, former]) {
      if (leaf === null || leaf.notAfterMs <= nowMs) continue
      for (const name of leaf.names) if (asked.has(name)) found.set(name, node)
    }
  }
  return found
}

const heldByNode = ({ name, node, how }: NameHeld): StoreRefused => {
  const host = bareName(name)
  return how === 'registered'
    ? new StoreRefused(
        'NAME_HELD',
        `${host} is registered for node ${node}, whose programs have certificates for it: the plane cannot have the same name`,
        `Take it from the node: start the plane without that name, then muster node names remove ${node} ${host}; or give the plane another one: --server-name NAME`,
      )
    : new StoreRefused(
        'NAME_HELD',
        `a program of node ${node} has a certificate for ${host} that has not expired: it could pass for the plane`,
        `Wait until it has expired (muster node show ${node}), or give the plane another name: --server-name NAME`,
      )
}
