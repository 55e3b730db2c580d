// R3, R4: what the plane that leads finds in the background. Rows and journal of a real store are changed by SQL under a watch
// whose timers run a hundred times as fast.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { inspect } from 'node:util'
import { type Change, entry } from '#domain/core/change.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import type { Recovery } from '#domain/core/node.ts'
import { openFeed } from '#plane/core/feed.ts'
import { verifiedAgainst } from '#plane/foundation/keep-witness.ts'
import { openJournalWatch, type JournalWatch } from '#plane/journal/journal-watch.ts'
import { openJournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openUnresolvedAlerts, type UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { purgeNode } from '#plane/revocation/purge-node.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog, type Log } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { quickCheck } from '#platform/sqlite-check.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { databaseOf, storeEnvironment } from '../process/store-under-test.ts'
import { tamperWith } from '../process/tamper.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { makeSigner, newNode, openPostgresStoreOn, openStore, someTimeMs, type StoreOptions } from '../store/harness.ts'
import { newDomain } from '../store/transfer-setup.ts'

const hurried: Timers = {
  ...systemTimers,
  after: (ms, run, background) => systemTimers.after(ms / 100, run, background),
}

type Watched = {
  readonly store: Store
  readonly watch: JournalWatch
  readonly alerts: UnresolvedAlerts
  readonly sql: ReturnType<typeof tamperWith>['sql']
  /** A replica beside the first, with a chain of its own; null where there can be none. */
  another(): Promise<Store | null>
  /** What was logged as wrong. */
  readonly reasons: readonly string[]
  /** The alerts after a run in the background that began after the call. */
  run(): Promise<ReturnType<typeof alertsIn>>
}

const alertsIn = (alerts: UnresolvedAlerts) =>
  [...alerts.all()].map(({ kind, severity, subject, reason }) => ({ kind, severity, subject, reason }))

const setUp = async (t: TestContext, parts: Partial<Store> = {}): Promise<Watched> => {
  const folder = tempFolder(t)
  await storeEnvironment(t, folder)
  const database = await databaseOf(folder)
  const signer = makeSigner()
  const witness = openJournalWitness()
  const replica = async (options: StoreOptions = {}): Promise<Store | null> => {
    if (database === null) return null
    const store = await openPostgresStoreOn(database.target, signer, options)
    cleanup(t, () => store.close())
    return store
  }
  const opened = (await replica({ witness })) ?? (await openStore(folder, signer, { witness }))
  if (database === null) cleanup(t, () => opened.close())
  const reasons: string[] = []
  const log: Log = { ...silentLog, error: (fields: object) => void reasons.push(inspect(fields)) } as Log
  await opened.commit(newDomain)
  // As a plane has it: what this process knows of the journal has to be there.
  const store = { ...opened, journal: verifiedAgainst(witness, opened.journal), ...parts }
  const feed = openFeed()
  const alerts = await openUnresolvedAlerts(store, feed)
  const core = { store, feed, clock: systemClock, timers: hurried, random: systemRandom, log }
  const watch = openJournalWatch(core, {
    alerts,
    keyBook: { lookAtAll: async () => {} },
    domainName: () => 'test.example',
    loopLoad: () => 0,
  })
  const run = async (): Promise<ReturnType<typeof alertsIn>> => {
    const before = watch.last()
    for (;;) {
      const failures = reasons.length
      const led = watch.lead()
      const failed = (): boolean => reasons.slice(failures).some((reason) => reason.includes('StoreFault'))
      const outcome = await eventually('a verification', () => watch.last() !== before || (failed() && 'failed'))
      await led.stop()
      // A busy machine may keep a replica from renewing its lease. The watch would try again in a minute.
      if (outcome !== 'failed') return alertsIn(alerts)
    }
  }
  return { store, watch, alerts, sql: tamperWith(folder).sql, another: () => replica(), reasons, run }
}

const revokedNode = (id: string): Change => {
  const membership = { kind: 'revoked', sinceMs: someTimeMs, reason: 'stolen', by: 'operator:test' } as const
  const by = { actor: 'operator:test', source: null, correlation: null }
  const said = (type: 'host.enrolled' | 'host.revoked') => entry(by, someTimeMs, type, { node: id, epoch: 1 })
  return { ...newNode(id, { epoch: 1, membership }), entries: [said('host.enrolled'), said('host.revoked')] }
}

test('R3: one run fences every row that was set back, and lists and alerts only some of many', async (t) => {
  const { store, watch, sql, run } = await setUp(t)
  const ids = Array.from({ length: 104 }, (_, at) => `gpu-${String(at).padStart(3, '0')}`)
  await Promise.all(ids.map((id) => store.commit(revokedNode(id))))
  assert.deepEqual(await run(), [], 'nothing was changed yet')

  await sql(`UPDATE node SET membership = 'inactive',
    doc = replace(doc, '"kind":"revoked"', '"kind":"inactive","slots":null')`)
  const alerts = await run()
  for (const id of ids) assert.equal((await store.get('node', id))?.value.membership.kind, 'quarantined', id)
  const rows = watch.last()?.rows
  assert.deepEqual([rows?.nodes, rows?.differences.length, rows?.more], [104, 100, true])
  assert.equal(alerts.length, 21, '20 rows, and one for the rest')
  assert.ok(alerts.every(({ kind, severity }) => kind === 'rows_differ' && severity === 'critical'))
  await run()
  assert.deepEqual(watch.last()?.rows.differences, [], 'the fences made rows and journal agree')
})

test('R3: a purged node is no missing row; what has to stay of it is missed', async (t) => {
  const { store, sql, run } = await setUp(t)
  await store.commit(revokedNode('gpu-001'))
  const core = { store, feed: openFeed(), clock: systemClock, timers: hurried, random: systemRandom, log: silentLog }
  const by = { actor: 'operator:test', source: null, correlation: null }
  const purged = await purgeNode(core, 'gpu-001', 'asked for', by, () => null)
  assert.equal(purged.kind, 'committed')
  assert.deepEqual(await run(), [])
  await sql('DELETE FROM purged_node')
  const [alert] = await run()
  assert.equal(alert?.kind, 'rows_differ')
  assert.match(
    alert?.reason ?? '',
    /gpu-001: the journal says that it was purged in epoch 1, and what stays of it is gone/,
  )
})

test('R3: a node that was revoked is to be revoked again, and an open alert gains what differs later', async (t) => {
  const { store, alerts, sql, run } = await setUp(t)
  await store.commit(revokedNode('gpu-001'))
  const setBack = (from: string): Promise<unknown> =>
    sql(`UPDATE node SET membership = 'registered', doc = replace(doc, '"kind":"${from}"', '"kind":"registered"')`)
  await setBack('revoked')
  const [first] = await run()
  const advice =
    /; operator:test revoked it at .*: unknown\. Next: muster node revoke gpu-001; only if you know better: /
  assert.match(first?.reason ?? '', /^node gpu-001: its row says registered, and the journal says revoked/)
  assert.match(first?.reason ?? '', advice)
  const fenced = (await store.get('node', 'gpu-001'))?.value.membership
  assert.equal(fenced?.kind === 'quarantined' && fenced.revokedBefore?.by, 'operator:test')
  const [{ id }] = [...alerts.all()] as [Alert]
  await run()
  assert.equal([...alerts.all()][0]?.id, id, 'nothing new')

  await setBack('quarantined')
  const again = await run()
  assert.equal(again.length, 1)
  assert.match(
    again[0]?.reason ?? '',
    /its row says registered, and the journal says quarantined .*; earlier: node gpu-001/,
  )
  assert.match(again[0]?.reason ?? '', advice, 'its own fence is no reason to forget the revocation')
  assert.notEqual([...alerts.all()][0]?.id, id, 'an acknowledgement of the first does not cover it')
})

test('R3: the ban of a recovery key that a revocation names is put back; releases before 0.2.1 named and banned none', async (t) => {
  const { store, watch, run } = await setUp(t)
  const recoveryOf = (spki: string): Recovery => ({
    ...{ recoveredAtMs: [], denied: null, episode: null },
    credential: { kind: 'key', spki, publicKey: '', registeredAtMs: someTimeMs },
  })
  const by = { actor: 'operator:test', source: null, correlation: null }
  const membership = { kind: 'revoked', sinceMs: someTimeMs, reason: 'stolen', by: 'operator:test' } as const
  const [named, older] = ['a'.repeat(64), 'b'.repeat(64)]
  for (const [id, recovery, body] of [
    ['gpu-001', null, { recovery_key: `SHA256:${named}` }],
    ['gpu-002', recoveryOf(older), {}],
  ] as const) {
    const said = entry(by, someTimeMs, 'host.revoked', { node: id, epoch: 1 }, body)
    await store.commit({ ...newNode(id, { epoch: 1, membership, recovery }), entries: [said] })
  }
  await run()
  assert.deepEqual(
    watch.last()?.rows.differences.map(({ row, why }) => [row, why]),
    [['key-ban', `it was revoked, and its recovery key SHA256:${named} is not banned`]],
  )
  assert.notEqual(await store.get('key-ban', named), null)
  await run()
  assert.deepEqual(watch.last()?.rows.differences, [])
})

for (const [what, statements, why] of [
  [
    'an altered entry',
    [`UPDATE journal SET bytes = replace(bytes, 'gpu-001', 'gpu-007') WHERE node = 'gpu-001'`],
    /does not match its hash/,
  ],
  ['removed signatures', ['UPDATE journal SET signature = NULL, key_id = NULL'], /signatures were removed/],
] as const) {
  test(`R4: ${what} of the journal raise an alert in the background`, async (t) => {
    const { store, sql, run } = await setUp(t)
    for (const id of ['gpu-001', 'gpu-002']) await store.commit(newNode(id))
    assert.deepEqual(await run(), [])
    for (const statement of statements) await sql(statement)
    const alerts = (await run()).filter(({ kind }) => kind === 'journal_damaged')
    assert.equal(alerts.length, 1)
    assert.equal(alerts[0]?.severity, 'critical')
    assert.match(alerts[0]?.reason ?? '', why)
  })
}

test('R4: a whole chain that was deleted is noticed in the background', async (t) => {
  const { store, watch, sql, run, another, reasons } = await setUp(t)
  await store.commit(newNode('gpu-001'))
  const other = await another()
  let hasRead = other === null
  store.onForeignCommit(() => void (hasRead = true))
  await other?.commit(newNode('gpu-002'))
  // Only a chain that is known can be missed.
  await eventually('the other chain to be read', () => hasRead)
  assert.deepEqual(await run(), [])
  if (other === null) {
    await sql('DELETE FROM journal')
    await sql('DELETE FROM journal_base')
  } else {
    const [{ chain }] = await sql(`SELECT chain FROM journal WHERE node = 'gpu-002'`)
    await sql(`DELETE FROM journal WHERE chain = '${chain}'`)
    await sql(`DELETE FROM chain WHERE chain = '${chain}'`)
  }
  // A store that has lost a chain is in doubt and may take no alert: the log has it in any case.
  const led = watch.lead()
  // Who reads the chain first says it in words of its own.
  const noticed =
    /where the journal begins is missing|a whole chain is missing|the chain is not there|is not there any more|was there before/
  await eventually('the reason', () => reasons.some((reason) => noticed.test(reason)), { withinMs: 60_000 }).catch(
    (error: unknown) => assert.fail(`${String(error)}: ${reasons.join('\n')}`),
  )
  await led.stop()
  // Also when the feed has noticed the loss before: then the store takes the alert, and the journal is not called intact.
  assert.equal((await store.journal.verify()).kind, 'broken')
})

test('R4: damage of the database file that quick_check finds raises an alert in the background', async (t) => {
  const folder = tempFolder(t)
  const file = path.join(folder, 'muster.db')
  const filled = await openStore(folder, makeSigner())
  for (let at = 0; at < 40; at++) await filled.commit(newNode(`gpu-${at}`))
  await filled.close()
  assert.equal(await quickCheck(file), null)
  const bytes = fs.readFileSync(file)
  // Pages in the middle: the header and the schema stay good, so the file opens.
  for (let at = bytes.length >> 1; at < (bytes.length >> 1) + 3 * 4096; at++) bytes[at] = (bytes[at] ?? 0) ^ 0xff
  const damaged = path.join(tempFolder(t), 'muster.db')
  fs.writeFileSync(damaged, bytes)

  let looked = damaged
  const { run } = await setUp(t, { fileFault: () => quickCheck(looked) })
  const [alert] = await run()
  assert.deepEqual([alert?.kind, alert?.severity], ['store_damaged', 'critical'])
  assert.match(alert?.reason ?? '', /^the database file is damaged: .+\. Keep a copy of it/)
  looked = file
  assert.deepEqual(await run(), [], 'until the file is good again')
})
