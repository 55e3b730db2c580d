// A fleet of real agents that operators take from one issuer to another while it renews all the time. Whatever becomes of the issuers on the
// way, no node is inactive, enrolls again or is without a certificate, and no channel is cut.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { readRecord } from '#agent/diagnostics/record-files.ts'
import type { MigrationPlan, MigrationView } from '#wire/issuers/migration-api.ts'
import { nodeOf, succeeded } from '../compliance/ask-plane.ts'
import { joinCrowd, type CrowdMember } from '../process/agent-crowd.ts'
import { makeProfile, untilConnected } from '../process/agent-member.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually, type Patience } from '../process/eventually.ts'
import { keptIdentity } from '../process/kept-credentials.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import type { Plane } from '../process/start-plane.ts'

export type MigratingFleet = {
  /** Operators ask the first. */
  readonly planes: readonly [Plane, ...Plane[]]
  readonly members: readonly CrowdMember[]
  readonly patience: Patience
}

/** `root`: PEM. */
export type NewIssuer = { readonly name: string; readonly root: string; stop(): Promise<void>; start(): Promise<void> }

const profile = 'brief'

/** Renewals follow each other as fast as agents take them, and leave most of the lifetime to a machine that is busy. */
export const makeBriefProfile = (plane: Plane, lifetime: string): Promise<void> =>
  makeProfile(plane, profile, [
    ...['--from', 'gpu-cloud', `certificate.lifetimeMs=${lifetime}`],
    ...['certificate.renewFrom=0.125', 'certificate.renewTo=0.15'],
  ])

export const briefProfile = profile

/** A process has room for so many agents without being short of the processor that it has. */
const mostInProcess = 50

export const joinFleet = async (
  t: Scope,
  planes: MigratingFleet['planes'],
  { count, patience }: { readonly count: number; readonly patience: Patience },
): Promise<MigratingFleet> => {
  const members: CrowdMember[] = []
  for (let at = 0; members.length < count; at++) {
    const size = Math.min(mostInProcess, count - members.length)
    const crowd = await joinCrowd(t, planes[0], { prefix: `n${at}`, count: size, profile })
    await untilConnected(crowd, patience)
    members.push(...crowd)
  }
  return { planes, members, patience }
}

const migrate = async <T = MigrationView>({ planes: [plane] }: MigratingFleet, ...words: string[]): Promise<T> => {
  const ran = await plane.muster('issuer', 'migrate', profile, ...words, '-o', 'json')
  assert.equal(ran.code, 0, ran.stderr + ran.stdout)
  return JSON.parse(ran.stdout) as T
}

/** Once what is in its way is over; the last refusal explains a failure. */
const migrateInTime = (fleet: MigratingFleet, ...words: string[]): Promise<MigrationView> =>
  eventually(`migrate ${words.join(' ')}`, () => migrate(fleet, ...words), fleet.patience)

/** By the call itself: it is asked again and again. */
const viewAt = async (plane: Plane): Promise<MigrationView> =>
  succeeded(await plane.api('GET', `/v1/issuer-migrations/${profile}`))

const progress = async ({ planes: [plane] }: MigratingFleet) =>
  (await viewAt(plane)).progress ?? assert.fail('it is over')

const untilMoved = (fleet: MigratingFleet, what: string, moved: number): Promise<unknown> =>
  eventually(what, async () => (await progress(fleet)).moved === moved, fleet.patience)

/** The serial of each one's certificate, by its own account. */
const serialsOf = ({ members }: MigratingFleet): ReadonlyMap<string, string | null> =>
  new Map(members.map(({ id, says }) => [id, says()?.certificate?.serial ?? null]))

/** The new root is delivered, and all go to the new issuer with their next certificate. */
export const shareAll = async (fleet: MigratingFleet, { name }: NewIssuer): Promise<void> => {
  const { length } = fleet.members
  const plan = await migrate<MigrationPlan>(fleet, '--to', name, '--plan')
  assert.equal(plan.active, length)
  assert.match(plan.notes.join('\n'), /verifiers outside Muster cannot be counted/)
  await migrate(fleet, '--to', name)
  await eventually(
    'every agent to have confirmed the new root',
    async () => (await progress(fleet)).unconfirmed.length === 0,
    fleet.patience,
  )
  await migrateInTime(fleet, '--share', '100')
  await untilMoved(fleet, `all of them to have moved to ${name}`, length)
}

/** While the new issuer is away, the old one renews them all in its place; afterwards they move again. */
export const survivesOutage = async (fleet: MigratingFleet, issuer: NewIssuer): Promise<void> => {
  await issuer.stop()
  const before = serialsOf(fleet)
  await eventually(
    'all of them to have been renewed by the issuer before',
    async () =>
      [...serialsOf(fleet)].every(([id, serial]) => serial !== null && serial !== before.get(id)) &&
      (await progress(fleet)).moved === 0,
    fleet.patience,
  )
  const views = await Promise.all(fleet.planes.map(viewAt))
  assert.ok(
    views.some(({ new_away_since: since }) => since !== null),
    'the answer says that it is away',
  )
  await issuer.start()
  await untilMoved(fleet, `all of them to be back at ${issuer.name}`, fleet.members.length)
}

/** From the last step that can be taken back, and there again. */
export const undoesAndRepeats = async (fleet: MigratingFleet): Promise<void> => {
  assert.equal((await migrateInTime(fleet, '--finish')).stage, 'finish')
  assert.equal((await migrate(fleet, '--back')).stage, 'share')
  assert.equal((await migrate(fleet, '--back')).stage, 'prepare')
  await untilMoved(fleet, 'all of them to be with the issuer before again', 0)
  await migrateInTime(fleet, '--share', '100')
  await untilMoved(fleet, 'all of them to have moved once more', fleet.members.length)
}

/** Nothing is left of the old issuer: on no machine is another root of issuers than that of the new one. */
export const retiresOld = async (fleet: MigratingFleet, { name, root }: NewIssuer): Promise<void> => {
  assert.equal((await migrateInTime(fleet, '--finish')).stage, 'finish')
  assert.equal((await migrateInTime(fleet, '--retire')).stage, 'retire')
  const wanted = [fingerprint(root)]
  await eventually(
    `every agent to have the root of ${name} alone`,
    () => fleet.members.every(({ state }) => isSame(keptIdentity(state).issuerRoots.roots.map(fingerprint), wanted)),
    fleet.patience,
  )
  for (const { id, state } of fleet.members) {
    const last = keptIdentity(state)
      .current.chainPem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g)
      ?.at(-1)
    const above = new X509Certificate(last ?? assert.fail(id))
    assert.ok(above.verify(new X509Certificate(root).publicKey), `${id} has a certificate of another issuer`)
  }
}

const fingerprint = (pem: string): string => new X509Certificate(pem).fingerprint256
const isSame = (one: readonly string[], other: readonly string[]): boolean => one.join() === other.join()

const disturbances = ['node.lapsed', 'node.returned', 'node.recovery_requested', 'node.recovered'] as const

export const isUndisturbed = async (fleet: MigratingFleet): Promise<void> => {
  const { members, patience } = fleet
  const [plane] = fleet.planes
  const ids = new Set(members.map(({ id }) => id))
  /** Of other machines nothing is known here. */
  const entriesOf = async (type: string) => (await journalEntries(plane, { type })).filter(({ node }) => ids.has(node))
  for (const type of disturbances) assert.deepEqual(await entriesOf(type), [], type)
  await untilConnected(members, patience)
  for (const { id, state } of members) {
    const { membership, epoch, conditions } = await nodeOf(plane, id)
    assert.deepEqual([membership, epoch, conditions], ['active', 1, []], id)
    const closed = readRecord(state).filter(({ code }) => code === 'channel_closed')
    assert.deepEqual(closed, [], `${id} has lost its channel`)
  }
  assert.equal((await entriesOf('host.enrolled')).length, members.length, 'each of them has enrolled once')
  const { alerts } = succeeded(await plane.api('GET', '/v1/alerts'))
  const others = alerts.filter(({ kind }: Json) => kind !== 'issuer_unavailable')
  assert.deepEqual(others, [], JSON.stringify(others))
}
