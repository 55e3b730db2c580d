// An attacker who can write the database file edits the journal. `muster journal verify` says where.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { chainedHash } from '#plane/store/journal/journal-chain.ts'
import type { Scope } from '../process/cleanup.ts'
import { journalEntries, newSecret, targetByAddress } from '../process/plane-records.ts'
import { rawNode } from '../process/raw-node.ts'
import { shared } from '../process/shared-plane.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

type Written = { readonly plane: Plane; readonly revocation: number }

/** A plane with a revocation in the middle of its journal: an intruder would want to attribute it to another operator. */
const write = async (scope: Scope): Promise<Written> => {
  const plane = await startPlane(scope)
  const target = await targetByAddress(plane)
  for (const id of ['gpu-001', 'gpu-002', 'gpu-003']) {
    const node = rawNode(target)
    assert.equal((await node.enrollByToken(await newSecret(plane, id))).status, 200)
    assert.equal((await node.confirm()).status, 200)
    if (id === 'gpu-002') await plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'compromised' })
  }
  assert.match((await plane.muster('journal', 'verify')).stdout, /^chain intact, \d+ entries$/m)
  const entries = await journalEntries(plane)
  const revocation = entries.find(({ type }) => type === 'host.revoked').sequence
  return { plane, revocation }
}

const written = shared(write)
/** For the edit that a plane does not get over: its store is in doubt from then on. */
const spoiled = shared(write)

const edit = <T>(data: string, change: (database: DatabaseSync) => T): T => {
  const database = new DatabaseSync(path.join(data, 'muster.db'), { timeout: 5000 })
  try {
    return change(database)
  } finally {
    database.close()
  }
}

/** The same length, and still an entry: only its hash can tell. */
const alter = (database: DatabaseSync, sequence: number): void => {
  const { changes } = database
    .prepare(`UPDATE journal SET bytes = replace(bytes, 'compromised', 'maintenance') WHERE sequence = ?`)
    .run(sequence)
  assert.equal(changes, 1)
}

/** With the real algorithm, which is public, but without the key that signs heads. */
const recomputeFrom = (database: DatabaseSync, first: number): void => {
  const rows = database.prepare('SELECT sequence, bytes FROM journal WHERE sequence >= ? ORDER BY sequence').all(first)
  const before = database.prepare('SELECT hash FROM journal WHERE sequence = ?').get(first - 1)
  const update = database.prepare('UPDATE journal SET hash = ? WHERE sequence = ?')
  let hash = before?.['hash'] as Uint8Array
  for (const { sequence, bytes } of rows) {
    hash = chainedHash(hash, String(bytes))
    update.run(hash, Number(sequence))
  }
}

const alterAndRecompute = (database: DatabaseSync, sequence: number): void => {
  alter(database, sequence)
  recomputeFrom(database, sequence)
}

/** What an edit of the file can be taken back with. */
const rowsOf = (database: DatabaseSync) => database.prepare('SELECT sequence, bytes, hash FROM journal').all()

const restore = (database: DatabaseSync, rows: ReturnType<typeof rowsOf>): void => {
  const update = database.prepare('UPDATE journal SET bytes = ?, hash = ? WHERE sequence = ?')
  for (const { bytes, hash, sequence } of rows) update.run(bytes ?? null, hash ?? null, sequence ?? null)
}

const exitCodeBroken = 5

/** By the command, and again after the plane went on: new signatures must not cover up what was done to old entries. */
const named = async (plane: Plane, sequence: number, why: string, newEnd: boolean): Promise<void> => {
  const { code, stdout } = await plane.muster('journal', 'verify')
  assert.equal(code, exitCodeBroken, stdout)
  assert.ok(stdout.startsWith(`chain broken at entry ${sequence}: ${why}`), stdout)
  if (newEnd) {
    const { status, body } = await plane.api('POST', '/v1/tokens', { node: 'gpu-004' })
    assert.deepEqual([status, body.code], [503, 'STORE_IN_DOUBT'], 'R4: the end is not the one this plane knows')
    assert.equal((await plane.api('POST', '/v1/nodes/gpu-003/revoke', { reason: 'stolen' })).status, 200)
  } else await newSecret(plane, 'gpu-004')
  const { body } = await plane.api('POST', '/v1/journal/verify', {})
  assert.deepEqual([body.intact, body.broken.from, body.broken.to], [false, sequence, sequence])
  assert.ok(body.broken.why.startsWith(why), body.broken.why)
}

const ways = {
  'an altered entry': {
    change: alter,
    newEnd: false,
    why: (sequence: number) => `entry ${sequence} does not match its hash`,
  },
  'an altered entry with every later hash recomputed': {
    change: alterAndRecompute,
    newEnd: true,
    // A revocation waits for nobody, so it was a group of its own, with a signed head of its own.
    why: (sequence: number) => `the signed head at entry ${sequence} does not fit`,
  },
}

for (const [what, { change, why, newEnd }] of Object.entries(ways)) {
  test(`${what}, edited under the running plane, is named by journal verify`, async () => {
    const { plane, revocation } = (newEnd ? spoiled : written)()
    const rows = edit(plane.data, (database) => {
      const before = rowsOf(database)
      change(database, revocation)
      return before
    })
    await named(plane, revocation, why(revocation), newEnd)
    if (newEnd) return
    edit(plane.data, (database) => restore(database, rows))
    assert.equal((await plane.api('POST', '/v1/journal/verify', {})).body.intact, true, 'with the edit taken back')
  })
}

for (const [what, { change, why, newEnd }] of Object.entries(ways)) {
  test(`${what}, edited while the plane was stopped, is named by journal verify`, async (t) => {
    const { plane, revocation } = written()
    await plane.stop()
    const data = path.join(tempFolder(t), 'data')
    fs.cpSync(plane.data, data, { recursive: true, filter: (file) => path.basename(file) !== 'run' })
    edit(data, (database) => change(database, revocation))
    await named(await startPlane(t, { data }), revocation, why(revocation), newEnd)
  })
}
