// A profile goes from the authority of the domain to an outside issuer and back, while its nodes renew.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { MigrationStep } from '#domain/issuers/change-migration.ts'
import { slotsOf } from '#domain/core/certificate.ts'
import type { Issued } from '#plane/identity/issue.ts'
import { beginMigration, stepMigration } from '#plane/issuers/migrate-profile.ts'
import { nodesOnTheWay } from '#plane/issuers/migration-progress.ts'
import { leaderStore } from '#plane/cluster/leading.ts'
import { keyId } from '#pki/spki.ts'
import { generateKey } from '#pki/keys.ts'
import type { RenewCall } from '#plane/identity/renew-certificate.ts'
import { operator } from './authority-setup.ts'
import { setUpOutside } from './outside-setup.ts'
import { codeOf, newCsr } from './recovery-setup.ts'

const names = Array.from({ length: 12 }, (_, index) => `n${index + 1}`)

const setUp = async (t: TestContext, nodes = names) => {
  const outside = await setUpOutside(t)
  const { plane, fake } = outside
  const { store, issuance, core, migrating } = plane
  await plane.signedBy('built-in')
  core.feed.publish({
    kind: 'committed',
    origin: 'elsewhere',
    writes: (await store.profiles()).map(({ value }) => ({ put: 'profile', value })),
    entries: [],
  })
  const counters = new Map<string, string>()
  const take = async (id: string, outcome: { readonly kind: string }): Promise<Issued> => {
    assert.equal(outcome.kind, 'issued', JSON.stringify(outcome))
    counters.set(id, plane.counterOf(outcome as Issued))
    await plane.firstUse(id)
    return outcome as Issued
  }
  for (const id of nodes) {
    const { counter } = await plane.recoverable(id, generateKey('p256'))
    counters.set(id, counter)
  }
  const revision = (): number => issuance.roots.current().revision
  const corps = keyId(fake.issuing.key.spki)
  return {
    ...{ ...outside, corps, revision, counters },
    begin: (to: string) => beginMigration(core, migrating, { profile: 'gpu-cloud', to }, operator),
    step: (step: MigrationStep) => stepMigration(core, migrating, { profile: 'gpu-cloud', step }, operator),
    /** As the channel of each would. */
    confirm: (some = nodes) => {
      for (const id of some) store.observe(id, { issuerRoots: revision() })
    },
    renew: async (id: string, call: Partial<RenewCall> = {}): Promise<Issued> =>
      take(id, await plane.renew(id, { counter: counters.get(id) ?? null, issuerRoots: revision(), ...call })),
    signers: async (): Promise<readonly string[]> => {
      const all = await Promise.all(nodes.map((id) => plane.nodeNow(id)))
      assert.ok(all.every(({ membership, epoch }) => membership.kind === 'active' && epoch === 1))
      return all.map((node) => (slotsOf(node)?.current.issuer === corps ? 'corp' : 'built-in'))
    },
    progress: async () => {
      const row = (await store.get('issuer-migration', 'gpu-cloud')) ?? assert.fail()
      return nodesOnTheWay(core, migrating, row.value)
    },
  }
}

const count = (all: readonly string[], what: string): number => all.filter((one) => one === what).length

test('twelve nodes go to an outside issuer and back, with that issuer away in the middle: none is re-enrolled or without a certificate', async (t) => {
  const fleet = await setUp(t)
  const { plane, fake, step } = fleet
  assert.equal(fleet.revision(), 0)
  assert.equal(codeOf(await fleet.begin('corp')), 'migrated')
  const { roots } = plane.issuance.roots.current()
  assert.equal(roots.length, 2, 'of the new issuer and of the one that it leaves')
  assert.ok(plane.issuance.roots.holds('corp'))
  await Promise.all(names.map((id) => fleet.renew(id)))
  assert.equal(count(await fleet.signers(), 'corp'), 0, 'nothing but the delivery changes')

  fleet.confirm(names.slice(0, 11))
  const early = await step({ kind: 'share', percent: 50 })
  assert.ok(early.kind === 'refused' && early.code === 'MIGRATION_NOT_READY' && /n12/.test(early.detail ?? ''))
  assert.deepEqual((await fleet.progress()).older, ['n12'])
  fleet.confirm()
  assert.equal(codeOf(await step({ kind: 'share', percent: 50 })), 'migrated')
  await Promise.all(names.map((id) => fleet.renew(id)))
  const half = count(await fleet.signers(), 'corp')
  assert.ok(half > 0 && half < 12, `${half} of 12 have moved`)

  const { answer } = fake
  fake.answer = () => Promise.reject(new Error('connection refused'))
  assert.equal(codeOf(await step({ kind: 'share', percent: 100 })), 'migrated')
  await Promise.all(names.map((id) => fleet.renew(id)))
  assert.equal(count(await fleet.signers(), 'corp'), 0, 'the old issuer signs in its place')
  fake.answer = answer
  await Promise.all(names.map((id) => fleet.renew(id)))
  assert.equal(count(await fleet.signers(), 'corp'), 12)

  assert.equal(codeOf(await step({ kind: 'finish' })), 'migrated')
  const [profile] = (await plane.store.profiles()).filter(({ value }) => value.name === 'gpu-cloud')
  assert.equal(profile?.value.certificate.issuer, 'corp')
  const stays = await step({ kind: 'retire' })
  assert.ok(
    stays.kind === 'refused' && /n1, .*n9/.test(stays.detail ?? ''),
    'certificates of the old issuer have not expired',
  )
  assert.equal(codeOf(await step({ kind: 'back' })), 'migrated')
  assert.equal(codeOf(await step({ kind: 'back' })), 'migrated')
  assert.match(((await step({ kind: 'back' })) as { detail?: string }).detail ?? '', /have certificates of corp/)
  await Promise.all(names.map((id) => fleet.renew(id)))
  assert.equal(count(await fleet.signers(), 'corp'), 0, 'nodes that have moved go back with their next certificate')
  assert.equal(codeOf(await step({ kind: 'back' })), 'migrated')
  assert.equal(fleet.revision(), 0)
  assert.equal(codeOf(await step({ kind: 'back' })), 'MIGRATION_NOT_FOUND')
  const entries = await plane.journal('issuer.migration_moved')
  assert.equal(entries.length, 5)
})

test('the old root goes once nothing hangs under it, and then nothing leads back', async (t) => {
  const fleet = await setUp(t, ['n1', 'n2'])
  const { plane, clock, step } = fleet
  await fleet.begin('corp')
  fleet.confirm()
  await step({ kind: 'share', percent: 100 })
  await step({ kind: 'finish' })
  await fleet.renew('n1')
  await fleet.renew('n2')
  clock.advance(13 * 3_600_000)
  await fleet.renew('n1')
  await fleet.renew('n2')
  clock.advance(13 * 3_600_000)
  assert.deepEqual((await fleet.progress()).underOld, [])
  assert.equal(codeOf(await step({ kind: 'retire' })), 'migrated')
  assert.deepEqual([plane.issuance.roots.current().roots.length, plane.issuance.roots.holds('corp')], [1, true])
  assert.equal(codeOf(await fleet.begin('built-in')), 'migrated')
})

test('the old root stays while a certificate of it that was replaced twice has not expired', async (t) => {
  const fleet = await setUp(t, ['n1', 'n2'])
  const { clock, step } = fleet
  await fleet.begin('corp')
  fleet.confirm()
  await step({ kind: 'share', percent: 100 })
  await step({ kind: 'finish' })
  for (let hour = 0; hour < 2; hour++) {
    clock.advance(3_600_000)
    for (const id of ['n1', 'n2']) await fleet.renew(id)
  }
  assert.deepEqual((await fleet.progress()).underOld, [], 'no slot has one')
  const refused = await step({ kind: 'retire' })
  assert.match('detail' in refused ? (refused.detail ?? '') : '', /^2 certificates of built-in .* the last ends \d{4}-/)
  clock.advance(23 * 3_600_000)
  assert.equal(codeOf(await step({ kind: 'retire' })), 'migrated')
})

test('an agent that does not say the set that is delivered stays with the issuer it had, and an excluded node too', async (t) => {
  const fleet = await setUp(t, ['n1', 'n2', 'n3'])
  const { plane, step, corps } = fleet
  await fleet.begin('corp')
  fleet.confirm(['n1', 'n2'])
  const unknown = await step({ kind: 'exclude', nodes: ['n9'] })
  assert.equal(codeOf(unknown), 'NODE_NOT_FOUND')
  await step({ kind: 'exclude', nodes: ['n3'] })
  assert.equal(codeOf(await step({ kind: 'share', percent: 100 })), 'migrated')
  assert.notEqual((await fleet.renew('n1', { issuerRoots: null })).certificate.issuer, corps, 'an agent of 0.6')
  assert.notEqual((await fleet.renew('n1', { issuerRoots: 7 })).certificate.issuer, corps, 'another set')
  assert.notEqual((await fleet.renew('n3')).certificate.issuer, corps)
  assert.equal((await fleet.renew('n2')).certificate.issuer, corps)
  const enrolled = await plane.enroll(await plane.invite('n4'), newCsr(), null)
  assert.ok(enrolled.kind === 'issued' && enrolled.certificate.issuer === corps, 'it gets the set with its certificate')
  await step({ kind: 'finish' })
  const excluded = await step({ kind: 'retire' })
  assert.ok(excluded.kind === 'refused' && /n3/.test(excluded.detail ?? ''))
})

test('a migration ends when the CA of its new issuer is withdrawn, and the profile is with the one before', async (t) => {
  const fleet = await setUp(t, ['n1'])
  const { plane, step, fake } = fleet
  const { core, store, issuance, deps } = plane
  await fleet.begin('corp')
  fleet.confirm()
  await step({ kind: 'share', percent: 100 })
  await step({ kind: 'finish' })
  await fleet.renew('n1')
  const publish = (committed: Parameters<typeof core.feed.publish>[0]): void => core.feed.publish(committed)
  const wanted = { issuer: keyId(fake.root.key.spki), reason: 'its key is known', by: operator, publish }
  const withdrawn = await deps.issuer.withdraw(wanted)
  assert.ok(withdrawn.kind === 'withdrawn' && withdrawn.issuers.length === 2, JSON.stringify(withdrawn))
  const token = store.replicas.leadership() ?? assert.fail()
  await issuance.endsWithdrawn.run(leaderStore(store, token))
  const { value } = (await store.get('issuer-migration', 'gpu-cloud')) ?? assert.fail()
  assert.deepEqual(value.stage, { kind: 'ended', why: 'corp was withdrawn' })
  assert.equal((await store.get('profile', 'gpu-cloud'))?.value.certificate.issuer, 'built-in')
})
