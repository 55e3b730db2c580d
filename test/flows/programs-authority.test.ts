// The root of programs and the issuing CA below it, over the years, on a real store.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import type { Profile } from '#domain/core/profile.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openProgramsAuthority } from '#plane/authority/programs-authority.ts'
import { bookOf } from '#plane/authority/issuer-book.ts'
import { openProgramLists } from '#plane/programs/program-lists.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { entry } from '#domain/core/change.ts'
import { outputsRule } from '#domain/programs/output-rules.ts'
import type { Output } from '#domain/programs/output.ts'
import { parseCrl } from '#pki/parse-crl.ts'
import { fromPem } from '#pki/pem.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { day, leafOrder, operator, setUp, type Setup } from './authority-setup.ts'

const year = 365 * day
const gpuCloud = shippedProfiles[0] as Profile
const outputs = outputsRule.kept?.([{ name: 'probe' }]) as readonly Output[]

const opened = async (setup: Setup, store: Store = setup.store, custody?: KeyCustody) => {
  const feed = openFeed()
  const core = { store, feed, clock: setup.clock, random: systemRandom, log: silentLog }
  const given = { custody: custody ?? (await setup.custody()), domain: 'test.example' }
  const programs = await openProgramsAuthority(core, given)
  const listOutput = async (): Promise<void> => {
    const committed = await store.commit({
      reads: [{ row: 'profile', key: gpuCloud.name, version: 1 }],
      writes: [{ put: 'profile', value: { ...gpuCloud, outputs } }],
      entries: [entry(operator, setup.clock.nowMs(), 'profile.changed', {}, {})],
    })
    assert.ok(committed !== 'lost-race')
    feed.publish(committed)
    await programs.maintain()
  }
  const listsOf = () =>
    openProgramLists(
      { ...core, timers: manualTimers(setup.clock) },
      {
        programs,
        outsideRoots: () => [],
        steadyMs: () => setup.clock.nowMs(),
        settings: () => defaultDomainSettings('test.example'),
      },
    )
  return { programs, listOutput, listsOf }
}

test('they are made with the first output, are no part of the trust of nodes, and are there after a restart', async (t) => {
  const setup = await setUp(t)
  const { programs, listOutput } = await opened(setup)
  await programs.maintain()
  assert.deepEqual([programs.stored().length, await programs.sign(leafOrder(setup.clock.nowMs()))], [0, null])
  await listOutput()
  const stored = programs.stored()
  assert.deepEqual(stored.map(({ row, signing }) => [row.role, signing]).sort(), [
    ['programs-issuing', true],
    ['programs-root', true],
  ])
  const book = bookOf(await setup.store.issuers())
  for (const { row } of stored) assert.equal(book.find(row.id), null)
  const again = (await opened(setup)).programs
  assert.deepEqual(again.roots(), programs.roots())
  const signed = await again.sign(leafOrder(setup.clock.nowMs()))
  assert.ok(signed !== null && again.has(signed.issuer) && again.chainOf(signed.issuer).length === 1)
})

test('a key that a crash left before the commit of its authority is set aside at a start, and the others stay', async (t) => {
  const setup = await setUp(t)
  const { programs, listOutput } = await opened(setup)
  await listOutput()
  const issued = programs.stored().find(({ row }) => row.role === 'programs-issuing')?.row ?? assert.fail('it is made')
  const crashed = await setup.custody()
  const text = crashed.find(issued) ?? assert.fail('its key is kept')
  for (const role of ['programs-root', 'programs-issuing'] as const) await crashed.keep({ role, id: 'dead' }, text)

  const custody = await setup.custody()
  const again = (await opened(setup, setup.store, custody)).programs
  await custody.refresh()
  const ofPrograms = custody.names().filter(({ role }) => role.startsWith('programs-'))
  assert.deepEqual(
    ofPrograms.map(({ id }) => id).sort(),
    again
      .stored()
      .map(({ row }) => row.id)
      .sort(),
  )
  assert.deepEqual(
    custody.asideNames().map(({ id }) => id),
    ['dead', 'dead'],
  )
  assert.notEqual(await again.sign(leafOrder(setup.clock.nowMs())), null)

  // In a newer database, which is put back, a row names it.
  await custody.setAside(issued)
  assert.notEqual(await (await opened(setup)).programs.sign(leafOrder(setup.clock.nowMs())), null)
  assert.deepEqual(again.roots(), programs.roots())
})

test('a key that was set aside and that a row names is taken back in the next round, and no successor is made', async (t) => {
  const setup = await setUp(t)
  const custody = await setup.custody()
  const { programs, listOutput } = await opened(setup, setup.store, custody)
  await listOutput()
  const signer = (await programs.sign(leafOrder(setup.clock.nowMs())))?.issuer
  // By another custody: one that made a key itself removes it.
  const other = await setup.custody()
  for (const { row } of programs.stored()) await other.setAside(row)
  await programs.lookAgain()
  assert.equal(programs.warnings().length, 1)
  await programs.maintain()
  assert.deepEqual(programs.warnings(), [])
  assert.equal((await programs.sign(leafOrder(setup.clock.nowMs())))?.issuer, signer)
  assert.equal(programs.stored().length, 2)
})

test('a key that cannot be set aside does not end a start', async (t) => {
  const setup = await setUp(t)
  await (await setup.custody()).keep({ role: 'programs-root', id: 'dead' }, 'no key')
  const custody = await setup.custody()
  const full: KeyCustody = { ...custody, setAside: () => Promise.reject(new Error('no space left')) }
  const { programs, listOutput } = await opened(setup, setup.store, full)
  await listOutput()
  assert.notEqual(await programs.sign(leafOrder(setup.clock.nowMs())), null)
})

test('where there are no programs, nobody loads the denials for their lists', async (t) => {
  const setup = await setUp(t)
  let loads = 0
  const counting: Setup['store'] = { ...setup.store, denials: () => (loads++, setup.store.denials()) }
  const { listsOf, listOutput } = await opened(setup, counting)
  const lists = listsOf()
  assert.deepEqual(await lists.lists(), { roots: [], lists: [] })
  assert.equal(loads, 0)
  await listOutput()
  assert.equal((await lists.lists()).lists.length, 2)
  assert.equal(loads, 1)
})

test('while replicas of the release before may run, none is made', async (t) => {
  const setup = await setUp(t)
  const unfinished = { schema: 3, newest: 4, waitsFor: [], failure: null }
  const { programs, listOutput } = await opened(setup, { ...setup.store, unfinishedUpgrade: () => unfinished })
  await listOutput()
  assert.deepEqual(programs.stored(), [])
})

test('each is replaced at half life; what has retired goes on signing its list, and a new root is given out before it is used', async (t) => {
  const setup = await setUp(t)
  const { programs, listOutput } = await opened(setup)
  await listOutput()
  const first = programs.stored().find(({ row }) => row.role === 'programs-issuing')?.row.id
  setup.clock.advance(3 * year)
  await programs.maintain()
  const signed = await programs.sign(leafOrder(setup.clock.nowMs()))
  assert.notEqual(signed?.issuer, first)
  const lists = programs.listAuthorities()
  assert.deepEqual([lists.length, lists.every(({ sign }) => sign !== null)], [3, true])

  for (const years of [2, 2, 2, 2]) {
    setup.clock.advance(years * year)
    await programs.maintain()
  }
  assert.equal(programs.roots().length, 2)
  const old = programs
    .stored()
    .find(({ row }) => row.role === 'programs-root' && row.notBeforeMs < setup.clock.nowMs() - year)
  const signing = programs.stored().find(({ row, signing: signs }) => row.role === 'programs-issuing' && signs)
  assert.equal(signing?.row.parent, old?.row.id, 'verifiers have had no time yet to learn the new one')
  assert.deepEqual(programs.warnings(), [])
})

test('the list of a root names a withdrawn CA also just after its end, and its number does not go back then', async (t) => {
  const setup = await setUp(t)
  const { programs, listOutput, listsOf } = await opened(setup)
  // Between two moments at which a list is due, and so is its end.
  setup.clock.advance(600_000)
  await listOutput()
  const issuing = programs.stored().find(({ row }) => row.role === 'programs-issuing')?.row ?? assert.fail('it is made')
  await programs.withdraw({ issuer: issuing.id, reason: 'copied', by: operator, publish: () => {} })
  const lists = listsOf()
  /** `entries`: their length. */
  const ofRoot = async () => {
    const found = (await lists.lists()).lists.find(({ role }) => role === 'root') ?? assert.fail('it has a list')
    const parsed = parseCrl(fromPem('X509 CRL', found.list) ?? assert.fail('it is PEM'))
    return parsed.kind === 'list' ? { number: parsed.number, entries: parsed.entries.length } : assert.fail(parsed.why)
  }
  setup.clock.advance(issuing.notAfterMs - 1000 - setup.clock.nowMs())
  const before = await ofRoot()
  setup.clock.advance(2000)
  assert.ok(before.entries > 0)
  assert.deepEqual(await ofRoot(), before)
})

const issuingKeys = async (setup: Setup): Promise<readonly string[]> =>
  (await setup.custody()).names().flatMap(({ role, id }) => (role === 'programs-issuing' ? [id] : []))

test('a crash between the commit of a withdrawal and the removal of the key leaves no key behind', async (t) => {
  const setup = await setUp(t)
  const custody = await setup.custody()
  const dies = { ...custody, drop: () => Promise.reject(new Error('the machine is gone')) }
  const { programs, listOutput } = await opened(setup, setup.store, dies)
  await listOutput()
  const [issuer = ''] = await issuingKeys(setup)
  const wanted = { issuer, reason: 'stolen', by: operator, publish: () => {} }
  await assert.rejects(programs.withdraw(wanted), /the machine is gone/)
  assert.deepEqual(programs.withdrawnIssuers(), [issuer])
  assert.ok((await issuingKeys(setup)).includes(issuer), 'this is what the crash leaves')
  assert.notEqual((await programs.sign(leafOrder(setup.clock.nowMs())))?.issuer, issuer, 'its successor signs')

  const again = (await opened(setup)).programs
  const successor = (await again.sign(leafOrder(setup.clock.nowMs())))?.issuer
  await again.maintain()
  assert.deepEqual(await issuingKeys(setup), [successor])
  // An ended one goes although nothing else is due.
  setup.clock.advance(3 * year)
  await again.maintain()
  assert.equal((await issuingKeys(setup)).length, 2)
  setup.clock.advance(2.1 * year)
  await again.maintain()
  assert.ok(!(await issuingKeys(setup)).includes(successor ?? ''))
})

test('a withdrawal that loses its race leaves no key of the successor that it had made', async (t) => {
  const setup = await setUp(t)
  let lost = 0
  const commit: Store['commit'] = async (change, ...token) => {
    const isWithdrawal = change.entries.some(({ type }) => type === 'ca.compromised')
    return isWithdrawal && lost++ === 0 ? 'lost-race' : setup.store.commit(change, ...token)
  }
  const { programs, listOutput } = await opened(setup, { ...setup.store, commit })
  await listOutput()
  const [issuer = ''] = await issuingKeys(setup)
  const done = await programs.withdraw({ issuer, reason: 'stolen', by: operator, publish: () => {} })
  assert.ok(done.kind === 'withdrawn' && lost === 2)
  assert.deepEqual(await issuingKeys(setup), done.successors)
})
