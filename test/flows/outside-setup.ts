// A profile that an outside issuer signs for, on a store that can be opened once more, as after a crash.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Change, RowKind, RowTypes } from '#domain/core/change.ts'
import { everySlot, slotsOf } from '#domain/core/certificate.ts'
import { decideQuarantine, decideRelease } from '#domain/revocation/quarantine.ts'
import { decideRevoke } from '#domain/revocation/revocation.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import type { Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { Core } from '#plane/core/core.ts'
import type { NewAuthority } from '#plane/authority/create-authority.ts'
import type { KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import type { MigrationParts } from '#plane/issuers/migration-progress.ts'
import { openKnownIssuers, type KnownIssuers } from '#plane/issuers/known-issuers.ts'
import { openIssuance, type Issuance } from '#plane/issuers/open-issuance.ts'
import type { IssuerDoor } from '#plane/issuers/outside-orders.ts'
import { leaderStore } from '#plane/cluster/leading.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { Timers } from '#platform/timers.ts'
import { fakeIssuer, type FakeIssuer } from '../fakes/fake-issuer.ts'
import type { ManualClock } from '../fakes/manual-clock.ts'
import { cleanup } from '../process/cleanup.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { onPostgres } from '../process/store-under-test.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { change, makeSigner, openPostgresStoreOn, openStore } from '../store/harness.ts'
import { operator, setUpOn, startMs, type Setup } from './authority-setup.ts'
import { changeProfile, openRecoverySetup } from './recovery-setup.ts'

const [gpuCloud] = shippedProfiles as readonly [Profile]

const signedBy = (issuer: string): Partial<Profile> => ({
  certificate: { ...gpuCloud.certificate, issuer },
})

/**
 * What becomes of the next commit that writes this. `never`: the process is gone before it; `unheard`: after it, before anybody hears of it.
 * `fails`, `fails-after`: the store has a fault, before it or behind it; the process goes on.
 */
export type Crash = {
  readonly at: (change: Change) => boolean
  readonly commits: 'never' | 'unheard' | 'fails' | 'fails-after'
}

const crashing = (store: Store, crash: { next: Crash | null }): Store => ({
  ...store,
  async commit(asked, token) {
    const now = crash.next
    if (now?.at(asked) !== true) return store.commit(asked, token)
    if (now.commits === 'unheard' || now.commits === 'fails-after') await store.commit(asked, token)
    if (now.commits === 'never' || now.commits === 'unheard') return new Promise(() => {})
    crash.next = null
    throw new Error('the store has a fault')
  },
})

/** Left out: the fake issuer stands there by itself, and the time of its callers is real. */
export type BeforeTheIssuer = {
  readonly timers: (clock: ManualClock) => Timers
  readonly door: (core: Core, known: KnownIssuers) => IssuerDoor
}

/** A plane of the domain: what a start makes. */
const openPlane = async (on: Setup, fake: FakeIssuer, before: BeforeTheIssuer | null) => {
  const crash: { next: Crash | null } = { next: null }
  const setup = on.on(crashing(on.store, crash))
  const opened: { readonly issuance: Issuance; readonly core: Core; readonly known: KnownIssuers }[] = []
  const signers = async (core: Core, own: Authority) => {
    const known = await openKnownIssuers(core)
    const door = before === null ? fake.door : before.door(core, known)
    const issuance = await openIssuance(core, { own, door, known })
    opened.push({ issuance, core, known })
    return { issuer: { ...own, ...issuance.issuer }, orders: issuance.orders }
  }
  const flows = await openRecoverySetup(setup, signers, before?.timers(setup.clock))
  const { issuance, core, known } = opened[0] ?? assert.fail()
  const { upkeep, book, roots } = issuance
  const health = () => ({
    asking: 0,
    waiting: 0,
    perSecond: 1,
    away: null,
    refused: null,
    answeredAtMs: null,
    aheadMs: null,
  })
  const migrating: MigrationParts = { known, book, roots, outside: { health } }
  const { store } = setup
  const rows = async <K extends RowKind>(kind: K): Promise<readonly RowTypes[K][]> =>
    (await store.list(kind, { after: null, limit: 1000 })).map(({ value }) => value)
  return {
    ...flows,
    crash,
    book,
    core,
    known,
    issuance,
    custody: () => on.custody(),
    migrating,
    rows,
    orders: () => rows('order'),
    /** The serials of the certificates of nodes. */
    certified: async () =>
      (await rows('certificate')).flatMap(({ subject, serial }) => (subject.kind === 'node' ? [serial] : [])),
    /** What is in the outbox, by serial. */
    toBeRevoked: async () => (await rows('issuer-revocation')).map(({ serial }) => serial),
    signedBy: (issuer: string) => changeProfile(store, signedBy(issuer)),
    /** What an operator does to a node. */
    async act(id: string, action: 'revoke' | 'quarantine' | 'release'): Promise<void> {
      const done = await commitDecision(flows.deps, async () => {
        const [node, domain] = [await store.get('node', id), await domainSettingsRow(store)]
        assert(node !== null)
        const facts = { node, domain, by: operator, nowMs: setup.clock.nowMs(), reason: 'to see what comes of it' }
        if (action === 'release') return decideRelease(facts)
        if (action === 'quarantine') return decideQuarantine(facts)
        const slots = slotsOf(node.value)
        const bans = (slots === null ? [] : everySlot(slots)).map(({ spki }) => ({ spki, row: null }))
        return decideRevoke({ ...facts, certificates: [], bans })
      })
      assert.equal(done.kind, 'committed', JSON.stringify(done))
    },
    /** What the leader does every few seconds. `before`: what happens between its reading and each of its commits. */
    async sweep(before: () => Promise<void> = async () => {}): Promise<void> {
      const token = store.replicas.leadership()
      assert(token !== null, 'this plane leads')
      const leading = leaderStore(store, token)
      const commit: typeof leading.commit = async (asked) => {
        await before()
        return leading.commit(asked)
      }
      await upkeep.run({ ...leading, commit })
    },
  }
}

export type OutsidePlane = Awaited<ReturnType<typeof openPlane>>

type OutsideOptions = {
  readonly takesSerial?: boolean
  readonly before?: BeforeTheIssuer | null
  /** Of the built-in authority; left out: sealed here. */
  readonly keys?: { readonly wanted: Partial<NewAuthority>; readonly elsewhere: KeysElsewhere }
}

export const setUpOutside = async (t: TestContext, { before = null, ...options }: OutsideOptions = {}) => {
  const folder = tempFolder(t)
  const signer = makeSigner()
  const target = onPostgres() ? (await postgresDatabase(t, 'migrated')).target : null
  const openOne = async (): Promise<Store> => {
    const store = target === null ? await openStore(folder, signer) : await openPostgresStoreOn(target, signer)
    cleanup(t, () => store.close())
    return store
  }
  const first = await setUpOn(folder, await openOne(), options.keys?.wanted ?? {}, options.keys?.elsewhere)
  const fake = fakeIssuer(startMs, options)
  await first.store.commit(change(fake.reads, fake.writes))
  await changeProfile(first.store, signedBy(fake.issuer.name))
  const plane = await openPlane(first, fake, before)
  let running = first.store
  return {
    ...{ plane, fake, clock: first.clock },
    /** Another plane on what the first has left, which is gone. What it had under way goes on nowhere. */
    async restart(): Promise<OutsidePlane> {
      await running.close()
      running = await openOne()
      return openPlane(first.on(running), fake, before)
    },
    /** A second replica beside the first. */
    beside: async (): Promise<OutsidePlane> => openPlane(first.on(await openOne()), fake, before),
  }
}
