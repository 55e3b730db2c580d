// L8, R3: rows and journal are changed by SQL behind a plane's back, on both stores. Verification names each, alerts, and shuts
// out what the journal shuts out. One plane lives through these tests, in their order; test/flows/journal-watch.test.ts has what
// needs no plane.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { newSecret, storedCertificates, targetByAddress } from '../process/plane-records.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tamperWith } from '../process/tamper.ts'

const rounds = process.env['MUSTER_LONG'] === '1' ? 100 : 6

const alertsOf = async (plane: Plane, kind: string): Promise<readonly Json[]> =>
  (await plane.api('GET', '/v1/alerts')).body.alerts.filter((alert: Json) => alert.kind === kind)

const differences = async (plane: Plane): Promise<readonly string[]> => {
  const { body } = await plane.api('POST', '/v1/journal/verify', {})
  return body.rows.differences.map(({ row, subject, fenced }: Json) => `${row} ${subject}${fenced ? ' fenced' : ''}`)
}

const enrolled = async (plane: Plane, id: string) => {
  const node = rawNode(await targetByAddress(plane))
  const secret = await newSecret(plane, id)
  assert.equal((await node.enrollByToken(secret)).status, 200)
  assert.equal((await node.confirm()).status, 200)
  return { node, secret }
}

const revoke = async (plane: Plane, id: string): Promise<void> => {
  assert.equal((await plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'stolen' })).status, 200)
}

const warningsOf = async (plane: Plane): Promise<string> => (await plane.api('GET', '/readyz')).body.warnings.join('\n')

/** By its log: the metric also counts what operators ask for, and they have asked by then. */
const verifiedInBackground = (plane: Plane): Promise<true> =>
  eventually('the first verification in the background', () =>
    plane.stderr().includes('the journal was verified and compared with the rows'),
  )

const first = shared(async (scope) => {
  const plane = await startPlane(scope)
  return { plane, ...tamperWith(plane.data) }
})

test('nothing differs while nodes enroll, renew, lapse, are quarantined, released, revoked and come back', async () => {
  const { plane } = first()
  const target = await targetByAddress(plane)
  const act = async (id: string, verb: string): Promise<void> => {
    const { status, body } = await plane.api(
      'POST',
      `/v1/nodes/${id}/${verb}`,
      verb === 'release' ? {} : { reason: 'test' },
    )
    assert.equal(status, 200, JSON.stringify(body))
  }
  const live = async (id: string): Promise<void> => {
    for (const end of ['quarantine', 'revoke'] as const) {
      const node = rawNode(target)
      assert.equal((await node.enrollByToken(await newSecret(plane, id))).status, 200)
      assert.equal((await node.confirm()).status, 200)
      const { identity } = await node.renew()
      if (identity !== null) node.use(identity)
      await node.confirm()
      await act(id, end)
      if (end === 'quarantine') await act(id, 'release')
      if (end === 'quarantine') await act(id, 'revoke')
      assert.equal((await plane.api('POST', '/v1/nodes', { id, profile: 'gpu-cloud' })).status, 201)
    }
  }
  let living = true
  const lives = Promise.all(Array.from({ length: rounds }, (_, at) => live(`gpu-${at}`))).finally(
    () => (living = false),
  )
  const found: string[] = []
  while (living) found.push(...(await differences(plane)))
  await lives
  assert.deepEqual([...found, ...(await differences(plane))], [])
  assert.equal((await plane.api('POST', '/v1/journal/verify', {})).body.intact, true)
})

/** Left by one test to the next. */
let again: Plane
let fenced: { readonly node: RawNode; readonly spent: string }

test('R3: what was set back in the database is named, alerted and shut out until an operator has looked', async () => {
  const { plane, sql, edit } = first()
  // Its first run would fence what this test is about to ask for.
  await verifiedInBackground(plane)
  const { node } = await enrolled(plane, 'back')
  const [before] = await sql(`SELECT doc FROM node WHERE key = 'back'`)
  for (const id of ['denied', 'banned', 'kept']) await enrolled(plane, id)
  const spent = await enrolled(plane, 'spent')
  for (const id of ['back', 'denied', 'banned']) await revoke(plane, id)
  assert.deepEqual(await differences(plane), [], 'nothing was changed yet')

  // A stolen machine gets its row, its denial and its key back; another one only loses its denial or its ban.
  await edit('node', 'back', () => JSON.parse(before.doc))
  await sql(`UPDATE node SET membership = 'active' WHERE key = 'back'`)
  await sql(`DELETE FROM denial WHERE key IN ('epoch/1/back', 'epoch/1/denied')`)
  const [certificate] = await storedCertificates(plane, 'banned')
  await sql(`DELETE FROM key_ban WHERE key = '${certificate?.spki}'`)
  const tokens = (await plane.api('GET', '/v1/tokens?node=spent')).body.tokens
  const [{ key }] = await sql(`SELECT key FROM token WHERE id = '${tokens[0].id}'`)
  await edit('token', key, (token) => ({ ...token, state: { kind: 'unused' } }))

  const found = (await differences(plane)).toSorted()
  assert.deepEqual(found, [
    'denial back fenced',
    'denial denied fenced',
    'key-ban banned fenced',
    'node back fenced',
    `token ${tokens[0].id} fenced`,
  ])
  const alerts = await alertsOf(plane, 'rows_differ')
  assert.deepEqual(
    alerts.map(({ subject }) => subject).toSorted(),
    ['back', 'banned', 'denied', tokens[0].id].toSorted(),
  )
  assert.ok(alerts.every(({ severity }) => severity === 'critical'))
  assert.match(await warningsOf(plane), /rows differ from the journal \(4\)/)
  fenced = { node, spent: spent.secret }
})

test('L8: a journal whose tail was cut back to a signed head is noticed in the background after a start', async () => {
  const { plane, sql } = first()
  await enrolled(plane, 'cut')
  const [{ at }] = await sql('SELECT max(sequence) AS at FROM journal')
  await revoke(plane, 'cut')
  await plane.stop()
  await sql(`DELETE FROM journal WHERE sequence > ${at}`)
  // On PostgreSQL the row of the chain says how far it goes.
  const [chain] = await sql(`SELECT bytes, hash FROM journal WHERE sequence = ${at}`)
  if (process.env['MUSTER_TEST_STORE'] === 'postgres')
    await sql(`UPDATE chain SET sequence = ${at}, hash = '\\x${Buffer.from(chain.hash).toString('hex')}'`)
  // A plane that remembers the journal is in doubt at once (test/faults/lost-commits-sqlite.test.ts). This one does not.
  fs.rmSync(path.join(plane.data, 'journal-heads.json'))
  again = await plane.restart()
  const [alert] = await eventually('the alert', async () => {
    const alerts = await alertsOf(again, 'rows_differ')
    const ofCut = alerts.filter(({ subject }) => subject === 'cut')
    return ofCut.length > 0 && ofCut
  })
  assert.match(alert.reason, /its row says revoked, and the journal says active/)
  assert.equal((await again.api('GET', '/v1/nodes/cut')).body.membership, 'revoked', 'it stays shut out')
  const { code, stdout } = await again.muster('journal', 'verify')
  assert.equal(code, 5)
  assert.match(stdout, /chain intact, 1 row differs from it\nnode cut: its row says revoked/)
})

test('R3: the fences hold after a restart, and the alerts stay until they are acknowledged', async () => {
  const status = async (id: string): Promise<string> => {
    const [stored] = await storedCertificates(again, id)
    const { body } = await again.api('GET', `/v1/ca/certificates/${stored?.serial}`)
    return body.status
  }
  const { body: back } = await again.api('GET', '/v1/nodes/back')
  assert.equal(back.membership, 'quarantined')
  assert.match(back.why.join(' '), /operator:admin revoked it .*: stolen\. To revoke it again: muster node revoke back/)
  assert.deepEqual([await status('back'), await status('denied'), await status('kept')], ['revoked', 'revoked', 'good'])
  assert.notEqual((await fenced.node.confirm()).status, 200, 'its old certificate')
  const other = rawNode(await targetByAddress(again))
  assert.notEqual((await other.enrollByToken(fenced.spent)).status, 200, 'the spent token')
  assert.deepEqual(await differences(again), ['node cut'], 'the fence made rows and journal agree')
  assert.equal((await alertsOf(again, 'rows_differ')).length, 5, 'and the alerts stay')
  const [alert] = (await alertsOf(again, 'rows_differ')).filter(({ subject }) => subject === 'denied')
  assert.equal((await again.api('POST', `/v1/alerts/${alert.id}/ack`, {})).status, 200)
  await differences(again)
  assert.equal((await alertsOf(again, 'rows_differ')).length, 4, 'until one is acknowledged')
})
