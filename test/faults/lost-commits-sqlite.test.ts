// R1, L8, R4: an embedded store that has lost commits, noticed by what the plane keeps outside of it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { entry } from '#domain/core/change.ts'
import { openJournalWitness } from '#plane/store/journal/journal-witness.ts'
import { StoreInDoubt } from '#plane/store/contract/store-errors.ts'
import { act, makeToken, succeeded } from '../compliance/ask-plane.ts'
import { alice } from '../fakes/sample-rows.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { recoverableNode } from '../process/raw-recovery.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { makeSigner, newNode, openStore, workplace } from '../store/harness.ts'

const onSqlite = process.env['MUSTER_TEST_STORE'] !== 'postgres'
const edit = (folder: string, sql: string): void => {
  const database = new DatabaseSync(path.join(folder, 'muster.db'), { timeout: 5000 })
  database.exec(sql)
  database.close()
}

const setUp = async (t: Parameters<typeof workplace>[0]) => {
  const { folder, atEnd } = workplace(t)
  const witness = openJournalWitness()
  const store = await openStore(folder, makeSigner(), { witness })
  atEnd(() => store.close())
  for (const id of ['a', 'b', 'c']) await store.commit(newNode(id))
  return { folder, store, witness }
}

const cuts = {
  'its end cut off at a signed head': 'DELETE FROM journal WHERE sequence = 3',
  'another entry at its end': `UPDATE journal SET hash = x'00' WHERE sequence = 3`,
  'an entry behind its end': `INSERT INTO journal (sequence, operation, bytes, hash, type) VALUES (4, 'x', '{}', x'00', 'refused')`,
}
for (const [what, sql] of Object.entries(cuts))
  test(`R1: a running store with ${what} grants nothing any more, and still takes rights away`, async (t) => {
    const { folder, store, witness } = await setUp(t)
    edit(folder, sql)
    await assert.rejects(store.commit(newNode('d')), StoreInDoubt)
    await assert.rejects(store.commit(newNode('e')), StoreInDoubt)
    assert.deepEqual([witness.loss()?.sequence, store.replicas.standing().kind], [3, 'in-doubt'])
    assert.equal(store.replicas.leadership(), null)
    assert.equal(store.trouble(), null, 'its disk is well')
    const revoked = { reads: [], writes: [], entries: [entry(alice, 0, 'host.revoked', {}, {})] } as const
    assert.notEqual(await store.commit(revoked), 'lost-race')
    witness.confirmed(1)
    assert.notEqual(await store.commit(newNode('f')), 'lost-race')
    assert.equal(store.replicas.standing().kind, 'serving')
  })

test('R1: a running store stays in doubt when the entry it lost is put back', async (t) => {
  const { folder, store, witness } = await setUp(t)
  edit(folder, 'CREATE TABLE kept AS SELECT hash FROM journal WHERE sequence = 3')
  edit(folder, `UPDATE journal SET hash = x'00' WHERE sequence = 3`)
  await assert.rejects(store.commit(newNode('d')), StoreInDoubt)
  edit(folder, 'UPDATE journal SET hash = (SELECT hash FROM kept) WHERE sequence = 3')
  await assert.rejects(store.commit(newNode('d')), StoreInDoubt)
  assert.equal(witness.loss()?.sequence, 3)
})

test('R1: a revocation whose commit is the first to notice a loss is committed', async (t) => {
  const { folder, store, witness } = await setUp(t)
  edit(folder, 'DELETE FROM journal WHERE sequence = 3')
  const revoked = { reads: [], writes: [], entries: [entry(alice, 0, 'host.revoked', {}, {})] } as const
  const [grant, cutOff] = await Promise.allSettled([store.commit(newNode('d')), store.commit(revoked)])
  assert.deepEqual([grant.status, cutOff.status], ['rejected', 'fulfilled'])
  assert.equal(witness.loss()?.sequence, 3)
})

const doubtOf = async (plane: Plane): Promise<Json> =>
  eventually(
    'the doubt to be in the store',
    async () => succeeded(await plane.api('GET', '/v1/store/continuity')).doubt,
  )

describe('an older database put back under a plane', { concurrency: 2 }, () => {
  test('R1, L8: an older database put back beside the heads file is in doubt from the first moment, across restarts, until it is confirmed', async (t) => {
    if (!onSqlite) return
    const first = await startPlane(t)
    const stolen = await recoverableNode(first, 'stolen')
    const { secret } = await makeToken(first, { node: 'once' })
    await first.stop()
    const database = path.join(first.data, 'muster.db')
    const older = fs.readFileSync(database)
    const heads = path.join(first.data, 'journal-heads.json')
    assert.equal(JSON.parse(fs.readFileSync(heads, 'utf8')).heads.length, 1)

    const second = await first.restart()
    assert.equal((await second.api('GET', '/readyz')).status, 200, 'an ordinary restart is no loss')
    await act(second, 'stolen', 'revoke', { reason: 'stolen' })
    assert.equal((await rawNode(await second.target()).enrollByToken(secret)).status, 200)
    await second.stop()
    fs.writeFileSync(database, older)

    let plane = second
    for (const round of ['at once', 'after a restart']) {
      plane = await plane.restart()
      const ready = await plane.api('GET', '/readyz')
      assert.equal(ready.status, 503, round)
      assert.match(JSON.stringify(ready.body), /in-doubt/)
      const again = await rawNode(await plane.target()).enrollByToken(secret)
      assert.deepEqual([again.status, again.body.code], [503, 'STORE_IN_DOUBT'], round)
      await assert.rejects(stolen.recover(), /STORE_IN_DOUBT/, round)
      assert.match((await doubtOf(plane)).in_words, /^the store may be an older copy: plane .* has seen/)
      assert.ok(fs.existsSync(path.join(plane.data, 'store-doubt.json')), round)
      const verified = await plane.muster('journal', 'verify')
      assert.equal(verified.code, 5, verified.stdout)
      assert.match(verified.stdout + verified.stderr, /was there before/)
      await plane.stop()
    }
    plane = await plane.restart()
    await act(plane, 'stolen', 'revoke', { reason: 'stolen, as before' })
    assert.equal((await plane.muster('store', 'confirm', '--reason', 'the disk died')).code, 0)
    assert.equal((await plane.api('GET', '/readyz')).status, 200)
    assert.ok(!fs.existsSync(path.join(plane.data, 'store-doubt.json')))
    succeeded(await plane.api('POST', '/v1/tokens', { node: 'newcomer' }))
    await plane.stop()
    const last = await plane.restart()
    assert.equal((await last.api('GET', '/readyz')).status, 200)
    assert.equal((await last.muster('journal', 'verify')).code, 0)
  })

  test('L1: the newer database put back ends the doubt at the next start, and one that grew to its length does not', async (t) => {
    if (!onSqlite) return
    const first = await startPlane(t)
    const tokens: string[] = []
    for (let at = 0; at < 12; at++) tokens.push((await makeToken(first, { node: `t-${at}` })).id)
    await first.stop()
    const database = path.join(first.data, 'muster.db')
    const older = fs.readFileSync(database)
    const second = await first.restart()
    for (const node of ['a', 'b', 'c']) succeeded(await second.api('POST', '/v1/tokens', { node }))
    await second.stop()
    const newer = fs.readFileSync(database)
    const { sequence } = JSON.parse(fs.readFileSync(path.join(first.data, 'journal-heads.json'), 'utf8')).heads[0]

    fs.writeFileSync(database, older)
    let plane = await second.restart()
    const newest = async (): Promise<number> => Number((await journalEntries(plane)).at(-1)?.sequence)
    // Rights may be taken away in doubt, so the older copy goes on.
    for (const id of tokens) succeeded(await plane.api('POST', `/v1/tokens/${id}/revoke`))
    assert.ok((await newest()) > sequence)
    await plane.stop()
    plane = await plane.restart()
    assert.equal((await plane.api('GET', '/readyz')).status, 503, 'longer than before, with other entries')
    await plane.stop()

    fs.writeFileSync(database, newer)
    plane = await plane.restart()
    assert.equal((await plane.api('GET', '/readyz')).status, 200)
    succeeded(await plane.api('POST', '/v1/tokens', { node: 'd' }))
    const doubts = fs.readdirSync(plane.data).filter((name) => name.startsWith('store-doubt'))
    assert.equal(doubts.length, 1)
    assert.match(doubts[0] ?? '', /^store-doubt-\d{4}-\d\d-\d\dT[-0-9.]+Z\.json$/)
    const alerts = async () =>
      (await plane.api('GET', '/v1/alerts')).body.alerts.filter(
        (alert: { kind: string }) => alert.kind === 'store_put_back',
      )
    const [alert] = await alerts()
    assert.equal(alert.severity, 'critical')
    assert.ok(alert.reason.includes(`token ${tokens[0]} revoked; `), alert.reason)
    assert.ok(alert.reason.includes(`and 7 more. Revoke it again. The record is kept as ${doubts[0]}`), alert.reason)
    await plane.stop()
    plane = await plane.restart()
    assert.equal((await alerts())[0]?.id, alert.id, 'until it is acknowledged, and not told again')
    succeeded(await plane.api('POST', `/v1/alerts/${alert.id}/ack`, {}))
    assert.deepEqual(await alerts(), [])
  })
})
