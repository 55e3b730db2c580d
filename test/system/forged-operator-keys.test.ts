// R3: write access to the database does not make an operator. Rows are changed by SQL under a running plane, on both stores.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { sha256Hex } from '#platform/bytes.ts'
import { operatorCall, type Json } from '../process/operator-call.ts'
import { journalEntries } from '../process/plane-records.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tamperWith } from '../process/tamper.ts'

const whoami = async ({ socket }: Plane, secret: string): Promise<string> => {
  const { status, body } = await operatorCall(socket, secret, 'GET', '/v1/whoami')
  return status === 200 ? body.role : body.code
}

const madeKey = async (plane: Plane, name: string): Promise<{ id: string; secret: string; hash: string }> => {
  const { status, body } = await plane.api('POST', '/v1/keys', { name, role: 'viewer' })
  assert.equal(status, 201, JSON.stringify(body))
  return { id: body.key.id, secret: body.secret, hash: sha256Hex(body.secret) }
}

const newKey = (): { secret: string; hash: string } => {
  const secret = `muster_key_${randomBytes(32).toString('base64url')}`
  return { secret, hash: sha256Hex(secret) }
}

const alertedKeys = async (plane: Plane): Promise<readonly string[]> => {
  const { body } = await plane.api('GET', '/v1/alerts')
  return body.alerts.filter(({ kind }: Json) => kind === 'operator_key_forged').map(({ subject }: Json) => subject)
}

describe('operator keys changed in the database', { concurrency: true }, () => {
  test('R3: rows of operator keys that no plane wrote grant nothing, and each raises a critical alert', async (t) => {
    const plane = await startPlane(t)
    const { sql, edit, insert } = tamperWith(plane.data)

    const forged = newKey()
    const doc = { id: 'forged', name: 'eve', role: 'platform-admin', hash: forged.hash, createdBy: 'operator:admin' }
    await insert('operator_key', forged.hash, { ...doc, createdAtMs: 1, revokedAtMs: null }, { id: 'forged' })
    assert.equal(await whoami(plane, forged.secret), 'OPERATOR_KEY_INVALID')

    const raised = await madeKey(plane, 'raised')
    await edit('operator_key', raised.hash, (key) => ({ ...key, role: 'platform-admin' }))
    assert.equal(await whoami(plane, raised.secret), 'OPERATOR_KEY_INVALID')

    const back = await madeKey(plane, 'back')
    const [before] = await sql(`SELECT doc FROM operator_key WHERE key = '${back.hash}'`)
    assert.equal((await plane.api('POST', `/v1/keys/${back.id}/revoke`, {})).status, 200)
    await edit('operator_key', back.hash, () => JSON.parse(before.doc))
    assert.equal(await whoami(plane, back.secret), 'OPERATOR_KEY_INVALID', 'an older row, with its good MAC')

    // Another secret under a name and an id that are known.
    const swapped = await madeKey(plane, 'swapped')
    const own = newKey()
    const [row] = await sql(`SELECT doc FROM operator_key WHERE key = '${swapped.hash}'`)
    await sql(`DELETE FROM operator_key WHERE key = '${swapped.hash}'`)
    const { mac: _mac, ...stripped } = JSON.parse(row.doc)
    await insert('operator_key', own.hash, { ...stripped, hash: own.hash }, { id: swapped.id, live_name: 'swapped' })
    assert.equal(await whoami(plane, own.secret), 'OPERATOR_KEY_INVALID')

    const wanted = ['forged', raised.id, back.id, swapped.id].toSorted()
    assert.deepEqual((await alertedKeys(plane)).toSorted(), wanted)
    const { body } = await plane.api('GET', '/v1/alerts')
    for (const { kind, severity } of body.alerts)
      assert.deepEqual([kind, severity], ['operator_key_forged', 'critical'])

    const listed: Json[] = (await plane.api('GET', '/v1/keys')).body.keys
    assert.deepEqual(
      listed
        .filter((key) => key.forged === true)
        .map(({ id }) => id)
        .toSorted(),
      wanted,
    )
    assert.deepEqual(
      listed.filter((key) => key.forged !== true).map((key) => [key.name, 'forged' in key]),
      [['admin', false]],
    )
    assert.match((await plane.muster('key', 'list')).stdout, /forged +eve .* forged, grants nothing\n/)

    await plane.stop()
    const again = await plane.restart()
    for (const { secret } of [forged, raised, back, own])
      assert.equal(await whoami(again, secret), 'OPERATOR_KEY_INVALID')
    assert.equal(await whoami(again, plane.adminKey), 'platform-admin')
  })

  test('R3: a live admin row that grants nothing does not count as another admin', async (t) => {
    const plane = await startPlane(t)
    const forged = newKey()
    const doc = { id: 'forged', name: 'eve', role: 'platform-admin', hash: forged.hash, createdBy: 'operator:admin' }
    await tamperWith(plane.data).insert(
      'operator_key',
      forged.hash,
      { ...doc, createdAtMs: 1, revokedAtMs: null },
      { id: 'forged' },
    )
    const { body } = await plane.api('GET', '/v1/whoami')
    assert.equal((await plane.api('POST', `/v1/keys/${body.id}/revoke`, {})).body.code, 'LAST_ADMIN_KEY')
  })

  test('R3: keys of a release before MACs are adopted once, where the journal vouches for them', async (t) => {
    const plane = await startPlane(t)
    const { edit, insert, sql } = tamperWith(plane.data)
    const old = await madeKey(plane, 'old')
    const withoutMac = ({ mac: _mac, ...key }: Json): Json => key
    // As a 0.2.0 replica leaves it, while this plane runs: adopted at the first call.
    await edit('operator_key', old.hash, withoutMac)
    assert.equal(await whoami(plane, old.secret), 'viewer')
    await edit('operator_key', sha256Hex(plane.adminKey), withoutMac)
    const unknown = newKey()
    const doc = { id: 'unknown', name: 'eve', role: 'viewer', hash: unknown.hash, createdBy: 'system:first-start' }
    await insert('operator_key', unknown.hash, { ...doc, createdAtMs: 1, revokedAtMs: null }, { id: 'unknown' })
    await plane.stop()
    const again = await plane.restart()
    // At a start: before the first call.
    const adopted = await journalEntries(again, { type: 'operator_key.adopted' })
    assert.deepEqual(adopted.map(({ body }) => body.name).toSorted(), ['admin', 'old'])
    for (const { doc: text } of await sql(`SELECT doc FROM operator_key WHERE id <> 'unknown'`))
      assert.equal(typeof JSON.parse(text).mac, 'string')
    assert.equal(await whoami(again, unknown.secret), 'OPERATOR_KEY_INVALID')
    assert.deepEqual(await alertedKeys(again), ['unknown'])
  })
})
