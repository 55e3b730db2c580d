// The plane gets another name: the former one stays in its certificates until every node knows the new address, or an operator
// drops it. On SQLite and PostgreSQL.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Attribution } from '#domain/core/change.ts'
import { noHardware, type Node, type NodeId } from '#domain/core/node.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import type { NameClaim } from '#domain/programs/name-claim.ts'
import { openServedNames } from '#plane/authority/served-names.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { endpointSet } from '#plane/core/configuration.ts'
import { openFeed } from '#plane/core/feed.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { openPlaneNames } from '#plane/settings/plane-names.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import type { Observation } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { noPrograms, noWorkers } from '../fakes/no-programs.ts'
import { nodeRow } from '../fakes/sample-rows.ts'
import { eventually } from '../process/eventually.ts'
import { day, operator, setUp, startMs, type Setup } from './authority-setup.ts'

const by: Attribution = operator

/** A plane that was started with this name. */
const startNamed = async (setup: Setup, host: string, store = setup.store, more: readonly string[] = []) => {
  const { clock } = setup
  const core = { store, feed: openFeed(), clock, random: systemRandom, timers: manualTimers(clock), log: silentLog }
  const names = await openServedNames(core, { names: { dns: [host, ...more], ip: [] }, host, addresses: [] })
  const authority = await openAuthority(core, {
    custody: await setup.custody(),
    names,
    recovery: { storedRoots: () => [], warnings: () => [] },
    programs: noPrograms,
    workers: noWorkers,
    options: {
      domain: 'test.example',
      issuerKey: 'file',
      intermediateLifetimeMs: 1826 * day,
      serverLifetimeMs: 90 * day,
    },
  })
  await authority.maintain(90 * day)
  const urls = {
    ...{ node: `https://${host}:8443`, recovery: `https://${host}:8442`, marked: true },
    returnedAtMs: names.returnedAtMs(),
  }
  const planeNames = openPlaneNames(core, { names, urls: () => urls })
  const served = (): readonly string[] => authority.view().server_certificate.names
  return {
    authority,
    planeNames,
    served,
    revision: endpointSet(urls).revision,
    sweep: () => planeNames.upkeep.run(store),
    invite: (node: NodeId) =>
      createToken(
        core,
        { issuer: authority, urls: () => urls },
        { node, profile: null, replace: true, ttlMs: null },
        by,
      ),
    stateOf: async (name: string) =>
      (await planeNames.list()).find(({ claim }) => claim.name === `dns:${name}`) ?? assert.fail(`no ${name}`),
  }
}

const addNode = async ({ store }: Setup, id: NodeId, profile = 'gpu-cloud'): Promise<void> => {
  const { value } = nodeRow('active', { id, profile, hardware: noHardware })
  const note = { type: 'node.registered', atMs: startMs, ...by, node: id, epoch: null, token: null } as const
  const outcome = await store.commit({
    reads: [{ row: 'node', key: id, version: 0 }],
    writes: [{ put: 'node', value }],
    entries: [{ ...note, issuer: null, serial: null, body: {} }],
  })
  assert.notEqual(outcome, 'lost-race')
}

/** Its agent says which endpoint set it has, and that it could write it down. */
const acknowledge = ({ store }: Setup, id: NodeId, revision: number, writable = true): void => {
  const report = { endpoint_set: { id: 'runtime', revision, drift_total: 0 }, storage: { identity_writable: writable } }
  store.observe(id, { report: report as unknown as Observation['report'], agentVersion: '0.4.0' })
}

const renamed = async (t: TestContext) => {
  const setup = await setUp(t)
  const former = await startNamed(setup, 'old.example')
  return { setup, former, start: () => startNamed(setup, 'new.example') }
}

test('a former name stays in the certificate until every node has acknowledged, and then goes', async (t) => {
  const { setup, former, start } = await renamed(t)
  await addNode(setup, 'gpu-001')
  await addNode(setup, 'gpu-002')
  acknowledge(setup, 'gpu-001', former.revision)
  const plane = await start()
  assert.deepEqual(plane.served(), ['new.example', 'old.example'])
  const kept = await plane.stateOf('old.example')
  assert.deepEqual([kept.state, kept.needs?.nodes.length], ['kept', 2])

  acknowledge(setup, 'gpu-001', plane.revision)
  // One that could not write it down would have the former name again after a restart.
  acknowledge(setup, 'gpu-002', plane.revision, false)
  await plane.sweep()
  assert.deepEqual(
    (await plane.stateOf('old.example')).needs?.nodes.map(({ facts }) => facts.node.id),
    ['gpu-002'],
  )

  acknowledge(setup, 'gpu-002', plane.revision)
  await plane.sweep()
  assert.equal((await plane.stateOf('old.example')).state, 'dropped')
  await eventually('a certificate without it', () => plane.served().join() === 'new.example')
  const [dropped] = await setup.journal('domain.name_dropped')
  assert.deepEqual([dropped?.actor, dropped?.body['name']], ['system:names', 'old.example'])
})

test('a token that is not used yet keeps the name it was handed out with; an operator who drops it makes it void', async (t) => {
  const { setup, former, start } = await renamed(t)
  await addNode(setup, 'gpu-001')
  const made = await former.invite('gpu-001')
  assert.ok(made.kind === 'made')
  const plane = await start()
  acknowledge(setup, 'gpu-001', plane.revision)
  await plane.sweep()
  assert.deepEqual(
    (await plane.stateOf('old.example')).needs?.tokens.map(({ id }) => id),
    [made.token.id],
  )

  const effects = await plane.planeNames.effectsOfDrop('old.example')
  assert.ok(!isRefusal(effects))
  assert.deepEqual(effects[0]?.facts.slice(0, 2), ['0 nodes', '1 unused token void'])
  assert.ok(!isRefusal(await plane.planeNames.drop('old.example', by)))
  assert.equal((await setup.store.tokenById(made.token.id))?.value.state.kind, 'revoked')
  await eventually('a certificate without it', () => plane.served().join() === 'new.example')
})

test('the plan to drop a name lists who would be stranded, and by what they come back', async (t) => {
  const { setup, start } = await renamed(t)
  await addNode(setup, 'gpu-001')
  await addNode(setup, 'hpc-001', 'hpc-diskless')
  const plane = await start()
  acknowledge(setup, 'hpc-001', plane.revision)
  const effects = await plane.planeNames.effectsOfDrop('old.example')
  assert.ok(!isRefusal(effects))
  const [name, gpu, hpc] = effects
  assert.equal(name?.facts[0], '2 nodes')
  assert.deepEqual([gpu?.subject, gpu?.loses], ['node gpu-001', 'at once'])
  assert.match(gpu?.unrecoverable ?? '', /token create --node gpu-001/)
  assert.deepEqual([hpc?.subject, hpc?.loses], ['node hpc-001', null])
  assert.match(hpc?.unrecoverable ?? '', /domain join-string/)
  // It joins by its image each time it starts, so the name is not dropped without an operator.
  acknowledge(setup, 'gpu-001', plane.revision)
  await plane.sweep()
  assert.equal((await plane.stateOf('old.example')).state, 'kept')
})

test('the configured name is not dropped, and a name that was dropped can be taken again', async (t) => {
  const { setup, former, start } = await renamed(t)
  const refused = await former.planeNames.drop('old.example', by)
  assert.equal(isRefusal(refused) && refused.code, 'NAME_CONFIGURED')
  const plane = await start()
  await plane.sweep()
  assert.equal((await plane.stateOf('old.example')).state, 'dropped')
  const again = await startNamed(setup, 'Old.Example')
  assert.equal((await again.stateOf('old.example')).state, 'configured')
  assert.deepEqual(again.served().toSorted(), ['new.example', 'old.example'])
})

test('a name that is dropped while a certificate with it is made is not taken back by it', async (t) => {
  const setup = await setUp(t)
  await startNamed(setup, 'a.example')
  const renamed = await startNamed(setup, 'b.example')
  const { store, clock } = setup
  const elsewhere = { store, feed: openFeed(), clock, log: silentLog }
  const names = await openServedNames(elsewhere, {
    names: { dns: ['b.example'], ip: [] },
    host: 'b.example',
    addresses: [],
  })
  const wanted = names.wanted()
  assert.deepEqual(wanted.dns, ['b.example', 'a.example'])
  await renamed.sweep()
  assert.notEqual((await renamed.stateOf('a.example')).claim.holder.dropped, null)
  assert.equal(await names.claimPart(wanted), 'names have changed')
  assert.deepEqual(names.wanted().dns, ['b.example'])
})

test('a plane does not start with a name that a node holds, nor with one that a leaf of a program still carries', async (t) => {
  const { setup } = await renamed(t)
  const { store } = setup
  const note = { type: 'domain.changed', atMs: startMs, ...by, node: null, epoch: null, token: null } as const
  const entries = [{ ...note, issuer: null, serial: null, body: {} }] as const
  const holder = { kind: 'node', node: 'db-1', derived: false } as const
  const db = { name: 'dns:db.example', holder, sinceMs: startMs, by: by.actor, carriedUntilMs: 0 }
  // Its program has ended and the name was taken from the node: the leaf is denied, and could still be shown.
  const web = { ...db, name: 'dns:web.example', holder: { kind: 'nobody' }, carriedUntilMs: startMs + day } as const
  const put = async (...claims: readonly NameClaim[]): Promise<void> => {
    for (const value of claims) {
      const reads = [{ row: 'name-claim', key: value.name, version: 0 }] as const
      assert.notEqual(await setup.store.commit({ reads, writes: [{ put: 'name-claim', value }], entries }), 'lost-race')
    }
  }
  await put(db, web)

  for (const [host, said] of [
    ['db.example', /registered for node db-1/],
    ['web.example', /was given a certificate for web.example that may be accepted until 2/],
    ['*.example', /(db|web)\.example, which \*\.example covers,/],
  ] as const) {
    await assert.rejects(startNamed(setup, host), (error: unknown) => {
      assert.ok(error instanceof StoreRefused && error.code === 'NAME_HELD')
      assert.match(error.message, said)
      assert.match(error.next, /--server-name NAME/)
      return true
    })
  }
  setup.clock.advance(2 * day)
  assert.deepEqual((await startNamed(setup, 'web.example')).served(), ['web.example', 'old.example'])

  // A node got a name between the look and the commit that took the wildcard.
  await startNamed(setup, '*.test')
  await put({ ...db, name: 'dns:db.test' })
  await assert.rejects(startNamed(setup, '*.test'), /db\.test, which \*\.test covers, is registered for node db-1/)
  assert.equal((await store.get('name-claim', 'dns:*.test'))?.value.holder.kind, 'plane', 'it has served that one')

  // Or while the plane starts with it for the first time: every wildcard is given back, else the node gets no leaf any more.
  const between = ['dns:db.lab', 'dns:db.net'].map((name) => ({ ...db, name }))
  let isTaken = false
  const commit: Setup['store']['commit'] = async (change) => {
    const done = await setup.store.commit(change)
    if (isTaken || !change.writes.some((write) => write.put === 'name-claim' && write.value.name === 'dns:*.lab'))
      return done
    isTaken = true
    await put(...between)
    return done
  }
  const racing = { ...store, commit } as Setup['store']
  await assert.rejects(
    startNamed(setup, '*.lab', racing, ['*.net']),
    /db\.lab, which \*\.lab covers, is registered for node db-1/,
  )
  assert.ok(isTaken)
  for (const wildcard of ['dns:*.lab', 'dns:*.net'])
    assert.equal((await store.get('name-claim', wildcard))?.value.holder.kind, 'nobody')

  // Another replica has taken the wildcard while this one starts: it serves it, or gives it back itself.
  const served = {
    kind: 'plane',
    use: 'certificate',
    joinStrings: 0,
    namedAtMs: null,
    retaken: false,
    dropped: null,
  } as const
  let isOvertaken = false
  const commitLate: Setup['store']['commit'] = async (change) => {
    if (!isOvertaken && change.writes.some((write) => write.put === 'name-claim')) {
      isOvertaken = true
      await put({ ...db, name: 'dns:*.two', holder: served }, { ...db, name: 'dns:db.two' })
    }
    return setup.store.commit(change)
  }
  const overtaken = { ...store, commit: commitLate } as Setup['store']
  await assert.rejects(startNamed(setup, '*.two', overtaken), /db\.two, which \*\.two covers/)
  assert.ok(isOvertaken)
  assert.equal((await store.get('name-claim', 'dns:*.two'))?.value.holder.kind, 'plane')
  assert.ok(!(await startNamed(setup, 'web.example')).served().includes('*.lab'))
})

test('after A, B and A again B stays for a node whose acknowledgement of it may be lost, and for a bundle made meanwhile', async (t) => {
  const { setup, former, start } = await renamed(t)
  const { store, clock } = setup
  await addNode(setup, 'gpu-001')
  await addNode(setup, 'gpu-002')
  for (const id of ['gpu-001', 'gpu-002']) acknowledge(setup, id, former.revision)
  clock.advance(1000)
  const plane = await start()
  clock.advance(1000)
  const node = (await store.get('node', 'gpu-002')) ?? assert.fail('it is registered')
  const repair = {
    ...{ id: 'b1', hash: 'h1', by: by.actor, reason: 'x', usedBy: null },
    ...{ issuedAtMs: clock.nowMs(), expiresAtMs: clock.nowMs() + day },
  } as unknown as NonNullable<Node['repair']>
  const note = { type: 'node.repair_bundle_issued', atMs: startMs, ...by, node: 'gpu-002', epoch: 1 } as const
  await store.commit({
    reads: [{ row: 'node', key: 'gpu-002', version: node.version }],
    writes: [{ put: 'node', value: { ...node.value, repair } }],
    entries: [{ ...note, token: null, issuer: null, serial: null, body: {} }],
  })
  clock.advance(1000)

  const again = await startNamed(setup, 'old.example')
  assert.notEqual(again.revision, former.revision, 'what was acknowledged before is another set')
  assert.notEqual(again.revision, plane.revision)
  await again.sweep()
  const kept = await again.stateOf('new.example')
  assert.deepEqual([kept.state, kept.needs?.nodes.length, kept.needs?.bundles.length], ['kept', 2, 1])
  for (const id of ['gpu-001', 'gpu-002']) acknowledge(setup, id, again.revision)
  await again.sweep()
  assert.equal((await again.stateOf('new.example')).state, 'kept', 'the bundle has it')
  assert.equal((await startNamed(setup, 'old.example')).revision, again.revision, 'a restart is no other name')
  clock.advance(2 * day)
  await again.sweep()
  assert.equal((await again.stateOf('new.example')).state, 'dropped')
})

test('while a name is kept the leader looks at what kept it last, and at no other node or token', async (t) => {
  const { setup, former } = await renamed(t)
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003']) await addNode(setup, id)
  const second = await startNamed(setup, 'second.example')
  const made = await second.invite('gpu-002')
  assert.ok(made.kind === 'made')
  let walks = 0
  const counting: Setup['store'] = {
    ...setup.store,
    nodes: (query) => (walks++, setup.store.nodes(query)),
    list: (kind, query) => (kind === 'token' && walks++, setup.store.list(kind, query)),
  }
  const plane = await startNamed(setup, 'third.example', counting)
  const walksOf = async (run: () => Promise<void> | void): Promise<number> => {
    walks = 0
    await run()
    return walks
  }
  assert.ok((await walksOf(plane.sweep)) > 0)
  assert.equal(await walksOf(plane.sweep), 0, 'a node has not acknowledged')
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003']) acknowledge(setup, id, plane.revision)
  await plane.sweep()
  assert.equal(
    (await plane.stateOf('old.example')).state,
    'dropped',
    'of several names each goes when it is not needed',
  )
  assert.equal((await plane.stateOf('second.example')).state, 'kept', 'a token has it')
  assert.equal(await walksOf(plane.sweep), 0, 'the token is not used')
  assert.notEqual(former.revision, plane.revision)
})

test('the server certificate is renewed also where the names cannot be looked at', async (t) => {
  const { setup } = await renamed(t)
  let isBroken = false
  const list: Setup['store']['list'] = (kind, query) =>
    isBroken && kind === 'name-claim' ? Promise.reject(new Error('the store is away')) : setup.store.list(kind, query)
  let isFull = false
  const commit: Setup['store']['commit'] = (...given) =>
    isFull ? Promise.reject(new Error('the disk is full')) : setup.store.commit(...given)
  const plane = await startNamed(setup, 'old.example', { ...setup.store, list, commit })
  const before = plane.authority.serverIdentity().notAfterMs
  isBroken = true
  setup.clock.advance(60 * day)
  await assert.rejects(plane.authority.maintain(90 * day), /the store is away/)
  assert.equal(plane.authority.serverIdentity().notAfterMs, before + 60 * day)

  setup.clock.advance(60 * day)
  isFull = true
  await assert.rejects(plane.authority.maintain(90 * day), /the store is away/, 'not what followed from it')
})
