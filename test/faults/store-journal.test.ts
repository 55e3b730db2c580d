// An attacker edits the database file. What is possible without the signing key has to show.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test, type TestContext } from 'node:test'
import { chainedHash, signedBytes } from '#plane/store/journal/journal-chain.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import type { HeadSigner, Verification } from '#plane/store/contract/store.ts'
import { makeSigner, newNode, openStore, workplace } from '../store/harness.ts'

const groups = 4
const groupSize = 5

/** 20 entries in groups of 5: heads are signed at 5, 10, 15 and 20. */
const written = async (t: TestContext) => {
  const { folder, atEnd } = workplace(t)
  const signer = makeSigner()
  const store = await openStore(folder, signer)
  for (let group = 0; group < groups; group++)
    await Promise.all(Array.from({ length: groupSize }, (_, index) => store.commit(newNode(`n${group}-${index}`))))
  await store.close()
  return { folder, signer, atEnd }
}

const edit = (folder: string, change: (database: DatabaseSync) => void): void => {
  const database = new DatabaseSync(path.join(folder, 'muster.db'))
  change(database)
  database.close()
}

const verified = async (folder: string, signer: HeadSigner): Promise<Verification> => {
  const store = await openStore(folder, signer)
  try {
    return await store.journal.verify()
  } finally {
    await store.close()
  }
}

/** Another operator, same length, canonical still: the change an intruder would want. */
const alter = (database: DatabaseSync, sequence: number): void =>
  void database
    .prepare(`UPDATE journal SET bytes = replace(bytes, 'system:test', 'system:evil') WHERE sequence = ?`)
    .run(sequence)

/** With the real algorithm, but without the key. */
const recompute = (database: DatabaseSync, from: number, to: number): void => {
  const hashOf = database.prepare('SELECT hash FROM journal WHERE sequence = ?')
  const bytesOf = database.prepare('SELECT bytes FROM journal WHERE sequence = ?')
  for (let sequence = from; sequence <= to; sequence++) {
    const previous = sequence === 1 ? database.prepare('SELECT hash FROM journal_base').get() : hashOf.get(sequence - 1)
    const bytes = String(bytesOf.get(sequence)?.['bytes'])
    const hash = chainedHash(previous?.['hash'] as Uint8Array, bytes)
    database.prepare('UPDATE journal SET hash = ? WHERE sequence = ?').run(hash, sequence)
  }
}

const broken = (verification: Verification, from: number, to: number, why: RegExp): void => {
  assert(verification.kind === 'broken', 'the tampering was not noticed')
  assert.deepEqual([verification.from, verification.to], [from, to])
  assert.match(verification.why, why)
}

/** Verifies after the edit, and again after the plane went on with it: new signatures must not bless old tampering. */
const shows = async (
  t: TestContext,
  tamper: (database: DatabaseSync) => void,
  expected: [from: number, to: number, why: RegExp],
): Promise<void> => {
  const { folder, signer } = await written(t)
  edit(folder, tamper)
  broken(await verified(folder, signer), ...expected)
  const store = await openStore(folder, signer)
  await store.commit(newNode('later'))
  await store.close()
  const after = await verified(folder, signer)
  assert.equal(after.kind, 'broken', 'the next signed head covered it up')
}

describe('an edited journal', () => {
  test('untouched, it is intact', async (t) => {
    const { folder, signer } = await written(t)
    const verification = await verified(folder, signer)
    assert.deepEqual([verification.kind, verification.entries], ['intact', 20])
  })

  test('an altered entry is named', (t) => shows(t, (db) => alter(db, 7), [7, 7, /^entry 7 does not match its hash/]))

  test('an altered first entry is named', (t) => shows(t, (db) => alter(db, 1), [1, 1, /entry 1 does not match/]))

  test('with its own hash recomputed, the break is named together with the entries in doubt', (t) =>
    shows(
      t,
      (db) => {
        alter(db, 7)
        recompute(db, 7, 7)
      },
      [8, 8, /entry 8 does not match its hash, or entries from 6 on/],
    ))

  test('with every later hash recomputed, the signed heads give the range', (t) =>
    shows(
      t,
      (db) => {
        alter(db, 7)
        recompute(db, 7, 20)
      },
      [6, 10, /signed head at entry 10 does not fit/],
    ))

  test('with every later hash recomputed and the signatures removed too', (t) =>
    shows(
      t,
      (db) => {
        alter(db, 7)
        recompute(db, 7, 20)
        db.exec('UPDATE journal SET signature = NULL, key_id = NULL WHERE sequence >= 7')
      },
      [6, 20, /no signed head covers the entries behind 5/],
    ))

  test('a head signed by another key', (t) =>
    shows(
      t,
      (db) => {
        alter(db, 17)
        recompute(db, 17, 20)
        const { chain } = db.prepare('SELECT chain FROM journal_base').get() as { chain: string }
        const { hash } = db.prepare('SELECT hash FROM journal WHERE sequence = 20').get() as { hash: Uint8Array }
        const signature = makeSigner().sign(signedBytes('head', { chain, sequence: 20, hash }, 'test-key'))
        db.prepare('UPDATE journal SET signature = ? WHERE sequence = 20').run(signature)
      },
      [16, 20, /signed head at entry 20 does not fit/],
    ))

  test('an entry deleted in the middle', (t) =>
    shows(t, (db) => db.exec('DELETE FROM journal WHERE sequence BETWEEN 8 AND 9'), [
      8,
      9,
      /entries 8 to 9 are missing/,
    ]))

  test('an entry deleted and the rest moved up', (t) =>
    shows(
      t,
      (db) => {
        db.exec('DELETE FROM journal WHERE sequence = 8')
        for (let sequence = 9; sequence <= 20; sequence++)
          db.exec(`UPDATE journal SET sequence = ${sequence - 1} WHERE sequence = ${sequence}`)
        recompute(db, 8, 19)
      },
      [8, 8, /entry 8 is not in the place it was written for/],
    ))

  test('the end cut off inside a group', (t) =>
    shows(t, (db) => db.exec('DELETE FROM journal WHERE sequence > 18'), [
      16,
      18,
      /no signed head covers the entries behind 15/,
    ]))

  test('everything deleted', (t) =>
    shows(t, (db) => db.exec('DELETE FROM journal'), [1, 1, /no signed head covers the entries behind 0/]))

  test('the front cut off at an old head, passed off as pruning', (t) =>
    shows(
      t,
      (db) =>
        db.exec(`UPDATE journal_base SET (sequence, hash, signature, key_id) =
                   (SELECT sequence, hash, signature, key_id FROM journal WHERE sequence = 10);
                 DELETE FROM journal WHERE sequence <= 10`),
      [11, 11, /carries no signature of this plane/],
    ))

  test('an entry filed under another node, so that a filter does not find it', (t) =>
    shows(t, (db) => db.exec(`UPDATE journal SET node = 'other' WHERE sequence = 3`), [
      3,
      3,
      /filed under another node/,
    ]))

  test('the beginning said to be that of another domain', (t) =>
    shows(t, (db) => db.exec(`UPDATE journal_base SET domain = 'evil.example'`), [1, 1, /was altered/]))

  test('without the record of where it begins, the store does not open', async (t) => {
    const { folder, signer } = await written(t)
    edit(folder, (db) => db.exec('DELETE FROM journal_base'))
    await assert.rejects(
      openStore(folder, signer),
      (error) => error instanceof StoreRefused && error.code === 'JOURNAL_UNREADABLE',
    )
  })
})

describe('an edit under the running plane', () => {
  const running = async (t: TestContext) => {
    const { folder, signer, atEnd } = await written(t)
    const store = await openStore(folder, signer)
    atEnd(() => store.close())
    return { folder, store }
  }

  test('the end cut off at a signed head is noticed, because the plane knows what it wrote', async (t) => {
    const { folder, store } = await running(t)
    edit(folder, (db) => db.exec('DELETE FROM journal WHERE sequence > 15'))
    broken(await store.journal.verify(), 16, 20, /entries 16 to 20 are missing/)
  })

  test('entries put behind the last one are noticed', async (t) => {
    const { folder, store } = await running(t)
    edit(folder, (db) =>
      db.exec(`INSERT INTO journal (sequence, operation, bytes, hash, type) VALUES (21, 'x', '{}', x'00', 'refused')`),
    )
    broken(await store.journal.verify(), 21, 21, /not written by this plane/)
  })
})

test('verification starts at a signed base after pruning', async (t) => {
  const { folder, signer } = await written(t)
  edit(folder, (db) => {
    const { chain } = db.prepare('SELECT chain FROM journal_base').get() as { chain: string }
    const { hash } = db.prepare('SELECT hash FROM journal WHERE sequence = 8').get() as { hash: Uint8Array }
    const signature = signer.sign(signedBytes('base', { chain, sequence: 8, hash }, signer.keyId))
    db.prepare('UPDATE journal_base SET sequence = 8, hash = ?, signature = ?').run(hash, signature)
    db.exec('DELETE FROM journal WHERE sequence <= 8')
  })
  const verification = await verified(folder, signer)
  assert.deepEqual([verification.kind, verification.entries], ['intact', 12])
})

test('a hash is SHA-256 over the hash before and the bytes, as the documentation says', async (t) => {
  const { folder } = await written(t)
  edit(folder, (db) => {
    const rows = db.prepare('SELECT bytes, hash FROM journal WHERE sequence IN (11, 12) ORDER BY sequence').all()
    const [before, entry] = rows as { bytes: string; hash: Uint8Array }[]
    assert(before && entry)
    const expected = createHash('sha256').update(before.hash).update(entry.bytes, 'utf8').digest()
    assert.deepEqual(Buffer.from(entry.hash), expected)
  })
})
