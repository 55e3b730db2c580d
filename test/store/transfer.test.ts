// A domain from one store into another, and out of a backup or an old export: everything it holds, and nothing of what is wrong.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { backupStore } from '#plane/store/copy/backup-store.ts'
import { CopyRefused, type CopyRefusedCode } from '#plane/store/copy/copy-refusal.ts'
import { copyStore, restoreStore } from '#plane/store/copy/copy-store.ts'
import type { Manifest } from '#plane/store/copy/manifest.ts'
import { migrateStore } from '#plane/store/copy/migrate-store.ts'
import { storeStatus } from '#plane/store/copy/store-status.ts'
import { copiedTables } from '#plane/store/copy/stored-records.ts'
import { examineFolder } from '#plane/foundation/data-folder.ts'
import { writeOldExport } from './old-export.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { postgresDatabase } from '../process/postgres-server.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { newNode, openPostgresStoreOn, someToken } from './harness.ts'
import {
  furnishFolder,
  furnishStore,
  newDomain,
  newRows,
  onPostgres,
  onSqlite,
  run,
  someHardware,
  withStoreIn,
} from './transfer-setup.ts'

const domainName = (): string => 'lab.example'

const refused = async (doing: Promise<unknown>, code: CopyRefusedCode): Promise<CopyRefused> => {
  const error = await doing.then(
    () => assert.fail('it was done'),
    (thrown: unknown) => thrown,
  )
  assert(error instanceof CopyRefused, String(error))
  assert.equal(error.code, code, error.message)
  return error
}

const furnished = async (t: TestContext) => {
  const folder = tempFolder(t)
  const config = onSqlite(path.join(folder, 'data'))
  const signer = furnishFolder(config.dataFolder)
  await withStoreIn(config.dataFolder, signer, furnishStore)
  return { folder, config, signer, sealKey: path.join(config.dataFolder, 'seal.key') }
}

const manifestIn = (folder: string): Manifest =>
  JSON.parse(fs.readFileSync(path.join(folder, 'manifest.json'), 'utf8')) as Manifest

/** In a process of its own, which is killed when everything is written and nothing is finished. */
const killCopying = async (t: TestContext, from: string, destination: string, sealKey: string): Promise<void> => {
  const program = `
    import { copyStore } from '#plane/store/copy/copy-store.ts'
    import { onPostgres, onSqlite, run } from ${JSON.stringify(path.join(import.meta.dirname, 'transfer-setup.ts'))}
    const sealKey = ${JSON.stringify(sealKey)}
    const stand = new Int32Array(new SharedArrayBuffer(4))
    const onProgress = ({ doing }) => {
      if (doing !== 'reading it back') return
      console.log('all of it is written')
      Atomics.wait(stand, 0, 0)
    }
    await copyStore(onSqlite(${JSON.stringify(from)}), ${destination}, null, { ...run, onProgress })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: path.join(import.meta.dirname, '../..'),
  })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()))
  await eventually('the copy to be in the middle', () => said.includes('all of it is written') || null)
  const ended = new Promise((resolve) => child.on('close', resolve))
  child.kill('SIGKILL')
  await ended
}

describe('store copy', () => {
  test('what comes out of SQLite and goes into SQLite comes out of it again the same', async (t) => {
    const { folder, config, sealKey, signer } = await furnished(t)
    const other = onSqlite(path.join(folder, 'other'), sealKey)
    const done = await copyStore(config, other, 'lab.example', run)
    assert.deepEqual(fs.readdirSync(other.dataFolder).sort(), ['keys', 'manifest.json', 'muster.db', 'plane.lock'])
    for (const name of ['muster.db', 'manifest.json'])
      assert.equal(fs.statSync(path.join(other.dataFolder, name)).mode & 0o777, 0o600, name)
    assert.deepEqual(manifestIn(other.dataFolder), done.manifest)
    assert.deepEqual(done.manifest.heads, done.heads)
    const again = await copyStore(other, onSqlite(path.join(folder, 'again'), sealKey), null, run)
    assert.deepEqual([again.sha256, again.heads, again.counts], [done.sha256, done.heads, done.counts])

    await withStoreIn(other.dataFolder, signer, async (store) => {
      const verified = await store.journal.verify()
      assert.equal(verified.kind, 'intact')
      const tokens = await store.tokens({ node: null, limit: 10 })
      assert.deepEqual(
        tokens.map((row) => row.value.id),
        ['t1', 't2'],
      )
      assert.equal((await store.nodesByHardware(someHardware))[0]?.value.id, 'gpu-001')
      assert.equal((await store.observation('gpu-002')).lastSeenMs, 7)
      assert.notEqual(await store.commit(newNode('gpu-003')), 'lost-race')
      assert.equal((await store.journal.verify()).kind, 'intact')
    })
  })

  test('through PostgreSQL and back it is the same, entry by entry', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { folder, config, sealKey } = await furnished(t)
    const database = await postgresDatabase(t)
    const there = onPostgres(database, sealKey)
    const done = await copyStore(config, there, null, run)

    const connection = await database.connect()
    const { rows } = await connection.run({ name: 'chain', text: 'SELECT chain, sequence, writer FROM chain' })
    const [head] = done.heads
    assert.deepEqual(rows, [{ chain: head?.chain, sequence: head?.sequence, writer: null }])

    const back = await copyStore(there, onSqlite(path.join(folder, 'back'), sealKey), null, run)
    assert.deepEqual([back.sha256, back.heads, back.counts], [done.sha256, done.heads, done.counts])

    await refused(copyStore(config, there, null, run), 'STORE_NOT_EMPTY')
    assert.equal((await storeStatus(there)).content?.entries, done.counts.entry)
  })

  test('the chains of two planes on PostgreSQL stay two in another PostgreSQL and in SQLite, which continues one of them', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { folder, config, sealKey, signer } = await furnished(t)
    const [one, other] = [await postgresDatabase(t), await postgresDatabase(t)]
    const [first] = (await copyStore(config, onPostgres(one, sealKey), null, run)).heads
    const planes = [
      await openPostgresStoreOn(one.target, signer, { domainName }),
      await openPostgresStoreOn(one.target, signer, { domainName }),
    ]
    for (const [at, plane] of planes.entries()) assert.notEqual(await plane.commit(newNode(`more-${at}`)), 'lost-race')
    await refused(copyStore(onPostgres(one, sealKey), onPostgres(other, sealKey), null, run), 'STORE_IN_USE')
    for (const plane of planes) await plane.close()

    const { heads, sha256 } = await copyStore(onPostgres(one, sealKey), onPostgres(other, sealKey), null, run)
    assert.equal(heads.length, 2)
    assert.ok(heads.some((head) => head.chain === first?.chain && head.sequence > first.sequence))
    const store = await openPostgresStoreOn(other.target, signer, { domainName })
    const verified = await store.journal.verify()
    assert(verified.kind === 'intact')
    assert.deepEqual(
      verified.heads.map(({ chain, sequence, hash }) => ({ chain, sequence, hash })),
      heads,
    )
    const entries = await store.journal.read({ after: null, last: null, limit: 1000, node: null, type: null })
    await store.close()

    const sqlite = onSqlite(path.join(folder, 'sqlite'), sealKey)
    const there = await copyStore(onPostgres(one, sealKey), sqlite, null, run)
    assert.deepEqual([there.heads, there.sha256], [heads, sha256])
    let cursor = entries[3]?.cursor ?? null
    await withStoreIn(sqlite.dataFolder, signer, async (moved) => {
      const found = await moved.journal.verify({ known: heads })
      assert(found.kind === 'intact', JSON.stringify(found))
      assert.deepEqual(
        found.heads.map(({ chain, sequence, hash }) => ({ chain, sequence, hash })),
        heads,
      )
      assert.equal(await moved.journal.isWhole(), true)
      for (const { chain, sequence } of heads) assert.equal(await moved.journal.isProven(chain, sequence), true)
      const everything = { last: null, limit: 1000, node: null, type: null } as const
      assert.deepEqual(await moved.journal.read({ ...everything, after: null }), entries)
      assert.deepEqual(await moved.journal.read({ ...everything, after: cursor }), entries.slice(4))
      assert.deepEqual(await moved.journal.read({ ...everything, after: null, last: 3 }), entries.slice(-3))
      const ofNode = { ...everything, after: null, node: 'more-1' }
      assert.deepEqual(
        (await moved.journal.read(ofNode)).map(({ hash }) => hash),
        entries.filter(({ entry }) => entry.node === 'more-1').map(({ hash }) => hash),
      )
      const committed = await moved.commit(newNode('goes-on'))
      assert(committed !== 'lost-race')
      cursor = committed.entries[0]?.cursor ?? null
      // The cursor of a commit stands behind every chain, not only behind its own.
      assert.deepEqual(await moved.journal.read({ ...everything, after: cursor }), [])
      const grown = await moved.journal.heads()
      assert.equal(grown.length, 2)
      assert.ok(grown.some((head) => heads.some((old) => old.chain === head.chain && old.sequence < head.sequence)))
      assert.equal((await moved.journal.verify()).kind, 'intact')
    })
    await withStoreIn(sqlite.dataFolder, signer, async (moved) => {
      await moved.commit(newNode('after-a-restart'))
      assert.equal((await moved.journal.verify()).kind, 'intact')
    })

    // An entry of a closed chain that is altered, or cut off at a signed head, is found.
    const closed = (text: string): number => {
      const database = new DatabaseSync(path.join(sqlite.dataFolder, 'muster.db'))
      const { changes } = database.prepare(text).run()
      database.close()
      return Number(changes)
    }
    assert.equal(closed('DELETE FROM closed_entry WHERE sequence = (SELECT max(sequence) FROM closed_entry)'), 1)
    await withStoreIn(sqlite.dataFolder, signer, async (moved) =>
      assert.equal((await moved.journal.verify()).kind, 'broken'),
    )
    await refused(copyStore(sqlite, onSqlite(path.join(folder, 'cut'), sealKey), null, run), 'JOURNAL_BROKEN')
  })

  test('any domain survives the way there and back', async (t) => {
    const folder = tempFolder(t)
    const word = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 })
    const shape = fc.record({
      nodes: fc.uniqueArray(word, { maxLength: 6 }),
      tokens: fc.uniqueArray(word, { maxLength: 6 }),
    })
    let count = 0
    await fc.assert(
      fc.asyncProperty(shape, async ({ nodes, tokens }) => {
        const place = path.join(folder, String(++count))
        const config = onSqlite(path.join(place, 'data'))
        await withStoreIn(config.dataFolder, furnishFolder(config.dataFolder), async (store) => {
          await store.commit(newDomain)
          for (const id of nodes) await store.commit(newNode(id, { registeredBy: id }))
          for (const id of tokens) await store.commit(newRows({ put: 'token', value: someToken(id) }))
        })
        const sealKey = path.join(config.dataFolder, 'seal.key')
        const other = onSqlite(path.join(place, 'other'), sealKey)
        const first = await copyStore(config, other, null, run)
        const second = await copyStore(other, onSqlite(path.join(place, 'third'), sealKey), null, run)
        assert.equal(second.sha256, first.sha256)
      }),
      { numRuns: 8 },
    )
  })

  test('every table of a store is copied, or known not to be', async (t) => {
    const { config } = await furnished(t)
    const database = new DatabaseSync(path.join(config.dataFolder, 'muster.db'), { readOnly: true })
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    database.close()
    const journal = ['journal', 'journal_base', 'closed_chain', 'closed_entry']
    const copied = [...copiedTables.map(([, table]) => table), ...journal]
    assert.deepEqual(
      tables.map((row) => String(row['name'])).filter((name) => !copied.includes(name)),
      // Lived time begins anew where a store is copied to: it may lag, and never leads.
      ['write_probe', 'lived'],
    )
    if (withPeer(t, 'postgres') === null) return
    const there = await postgresDatabase(t)
    await migrateStore(onPostgres(there, '/nowhere/seal.key'), false)
    const connection = await there.connect()
    const { rows } = await connection.run({
      name: 'tables',
      text: "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename",
    })
    // Who is where, and who leads, is of the planes that run; lived time begins anew.
    const ofTheMoment = ['holder', 'leadership', 'lived', 'muster_schema', 'replica']
    const known = [...copiedTables.map(([, table]) => table), 'chain', 'journal', 'sealed_key']
    assert.deepEqual(
      rows.map((row) => String(row['tablename'])).filter((name) => !known.includes(name)),
      ofTheMoment,
    )
  })

  test('a copy that is killed in the middle leaves nothing a plane would start on, and is made anew', async (t) => {
    const { folder, config, sealKey, signer } = await furnished(t)
    const other = onSqlite(path.join(folder, 'other'), sealKey)
    await killCopying(t, config.dataFolder, `onSqlite(${JSON.stringify(other.dataFolder)}, sealKey)`, sealKey)
    assert.ok(fs.existsSync(path.join(other.dataFolder, 'muster.db.importing')))
    assert.throws(() => examineFolder(other.dataFolder), { code: 'DATA_FOLDER_INCOMPLETE' })
    const done = await copyStore(config, other, null, run)
    assert.equal(fs.existsSync(path.join(other.dataFolder, 'muster.db.importing')), false)
    await withStoreIn(other.dataFolder, signer, async (store) =>
      assert.equal((await store.journal.verify({ known: done.heads })).kind, 'intact'),
    )
  })

  test('a copy into PostgreSQL that is killed in the middle leaves an empty database, and is made anew', async (t) => {
    if (withPeer(t, 'postgres') === null) return
    const { config, sealKey, signer } = await furnished(t)
    const there = await postgresDatabase(t)
    const other = onPostgres(there, sealKey)
    await killCopying(t, config.dataFolder, `onPostgres({ env: ${JSON.stringify(there.env)} }, sealKey)`, sealKey)
    const { content } = await storeStatus(other)
    assert.deepEqual([content?.domain, content?.entries, content?.chains], [null, 0, []])
    const connection = await there.connect()
    for (const [, table] of [...copiedTables, ['keys', 'sealed_key'] as const]) {
      const { rows } = await connection.run({ name: '', text: `SELECT count(*) AS count FROM ${table}` })
      assert.equal(Number(rows[0]?.['count']), 0, table)
    }
    const done = await copyStore(config, other, null, run)
    const store = await openPostgresStoreOn(there.target, signer)
    assert.equal((await store.journal.verify({ known: done.heads })).kind, 'intact')
    await store.close()
  })

  test('is refused into a store that is not empty, or that a plane runs on', async (t) => {
    const { folder, config, signer, sealKey } = await furnished(t)
    const source = onSqlite(path.join(folder, 'source'), sealKey)
    await copyStore(config, source, null, run)
    const before = fs.readFileSync(path.join(config.dataFolder, 'muster.db'))
    await refused(copyStore(source, config, null, run), 'STORE_NOT_EMPTY')
    const halfway = onSqlite(path.join(folder, 'halfway'), sealKey)
    furnishFolder(halfway.dataFolder)
    await refused(copyStore(source, halfway, null, run), 'STORE_NOT_EMPTY')
    await refused(copyStore(source, onSqlite(path.join(folder, 'new')), 'prod.example', run), 'OTHER_DOMAIN')
    await withStoreIn(config.dataFolder, signer, async () => {
      await refused(copyStore(source, config, null, run), 'STORE_IN_USE')
      await refused(copyStore(config, onSqlite(path.join(folder, 'new'), sealKey), null, run), 'STORE_IN_USE')
      await refused(migrateStore(config, false), 'STORE_IN_USE')
    })
    assert.deepEqual(fs.readFileSync(path.join(config.dataFolder, 'muster.db')), before)
    assert.equal(fs.existsSync(path.join(folder, 'new')), false)
  })
})

describe('store restore', () => {
  test('brings a backup into SQLite and into PostgreSQL, with the keys that lie in it', async (t) => {
    const { folder, config, signer, sealKey } = await furnished(t)
    const backup = path.join(folder, 'monday')
    const made = await backupStore(config, backup, run)
    const other = onSqlite(path.join(folder, 'other'))
    const restored = await restoreStore(backup, other, 'lab.example', run)
    assert.deepEqual([restored.sha256, restored.withSealingKey], [made.sha256, true])
    assert.deepEqual(fs.readFileSync(path.join(other.dataFolder, 'seal.key')), fs.readFileSync(sealKey))
    assert.ok(fs.existsSync(path.join(other.dataFolder, 'admin.key')))
    await withStoreIn(other.dataFolder, signer, async (store) =>
      assert.equal((await store.journal.verify({ known: made.heads })).kind, 'intact'),
    )
    if (withPeer(t, 'postgres') === null) return
    const database = await postgresDatabase(t)
    const there = onPostgres(database, sealKey)
    assert.equal((await restoreStore(backup, there, null, run)).sha256, made.sha256)
    const plane = await openPostgresStoreOn(database.target, signer, { domainName })
    // Its planes go on meanwhile.
    const fromThere = await backupStore(there, path.join(folder, 'tuesday'), run)
    await plane.close()
    assert.deepEqual([fromThere.sha256, fromThere.withSealingKey], [made.sha256, false])
    assert.deepEqual(fs.readdirSync(path.join(folder, 'tuesday')).sort(), ['keys', 'manifest.json', 'muster.db'])
    const home = onSqlite(path.join(folder, 'home'), sealKey)
    assert.equal((await restoreStore(path.join(folder, 'tuesday'), home, null, run)).sha256, made.sha256)
  })

  test('refuses a backup that is not what its manifest says, and a folder that is none', async (t) => {
    const { folder, config, sealKey } = await furnished(t)
    const backup = path.join(folder, 'monday')
    await backupStore(config, backup, run)
    const other = onSqlite(path.join(folder, 'other'))
    const spoil = (name: string, how: (copy: string) => void): string => {
      const copy = path.join(folder, name)
      fs.cpSync(backup, copy, { recursive: true })
      how(copy)
      return copy
    }
    const rewritten = spoil('rewritten', (copy) => {
      const database = new DatabaseSync(path.join(copy, 'muster.db'))
      database.exec(`UPDATE token SET doc = replace(doc, 'mesh-paas', 'gpu-cloud'); UPDATE token SET doc = replace(doc, '"t1"', '"t9"');
        PRAGMA journal_mode = DELETE`)
      database.close()
    })
    await refused(restoreStore(rewritten, other, null, run), 'BACKUP_DAMAGED')
    const relabelled = spoil('relabelled', (copy) => {
      const manifest = { ...manifestIn(copy), made_at: '2001-01-01T00:00:00.000Z' }
      fs.writeFileSync(path.join(copy, 'manifest.json'), JSON.stringify(manifest))
    })
    const { message } = await refused(restoreStore(relabelled, other, null, run), 'BACKUP_DAMAGED')
    assert.match(message, /not signed by the key of this domain/)
    const unlabelled = spoil('unlabelled', (copy) => fs.rmSync(path.join(copy, 'manifest.json')))
    await refused(restoreStore(unlabelled, other, null, run), 'BACKUP_UNKNOWN')
    await refused(restoreStore(config.dataFolder, other, null, run), 'BACKUP_UNKNOWN')
    const cut = spoil('cut', (copy) => {
      const database = new DatabaseSync(path.join(copy, 'muster.db'))
      database.exec(
        'DELETE FROM journal WHERE sequence = (SELECT max(sequence) FROM journal); PRAGMA journal_mode = DELETE',
      )
      database.close()
    })
    await assert.rejects(restoreStore(cut, other, null, run), CopyRefused)
    await refused(restoreStore(backup, other, 'prod.example', run), 'OTHER_DOMAIN')
    await refused(restoreStore(backup, onSqlite(config.dataFolder, sealKey), null, run), 'STORE_NOT_EMPTY')
    assert.equal(fs.existsSync(path.join(other.dataFolder, 'muster.db')), false)
    assert.deepEqual(fs.existsSync(other.dataFolder) ? fs.readdirSync(other.dataFolder) : [], ['plane.lock'])
  })
})

describe('an export file of 0.2', () => {
  const exported = async (t: TestContext) => {
    const all = await furnished(t)
    const file = path.join(all.folder, 'export')
    await writeOldExport(all.config, file, all.signer)
    return { ...all, file }
  }

  test('is restored as a whole', async (t) => {
    const { folder, file, config, signer, sealKey } = await exported(t)
    const direct = await copyStore(config, onSqlite(path.join(folder, 'direct'), sealKey), null, run)
    const other = onSqlite(path.join(folder, 'other'), sealKey)
    const restored = await restoreStore(file, other, 'lab.example', run)
    assert.deepEqual([restored.sha256, restored.heads], [direct.sha256, direct.heads])
    await withStoreIn(other.dataFolder, signer, async (store) =>
      assert.equal((await store.journal.verify()).kind, 'intact'),
    )
    if (withPeer(t, 'postgres') === null) return
    const there = onPostgres(await postgresDatabase(t), sealKey)
    assert.equal((await restoreStore(file, there, null, run)).sha256, direct.sha256)
  })

  test('is refused where it was cut off anywhere, and nothing is touched', async (t) => {
    const { folder, file, sealKey } = await exported(t)
    const whole = fs.readFileSync(file)
    const other = onSqlite(path.join(folder, 'other'), sealKey)
    const cut = path.join(folder, 'cut')
    for (const length of [
      whole.length - 1,
      whole.length - 30,
      whole.lastIndexOf('{"end"'),
      Math.floor(whole.length / 2),
    ]) {
      fs.writeFileSync(cut, whole.subarray(0, length))
      await refused(restoreStore(cut, other, null, run), 'BACKUP_DAMAGED')
    }
    fs.writeFileSync(cut, '')
    await refused(restoreStore(cut, other, null, run), 'BACKUP_UNKNOWN')
    fs.writeFileSync(cut, Buffer.concat([whole, Buffer.from('{}\n')]))
    await refused(restoreStore(cut, other, null, run), 'BACKUP_DAMAGED')
    assert.equal(fs.existsSync(other.dataFolder), false)
  })

  test('is refused where any byte was altered', async (t) => {
    const { folder, file, sealKey } = await exported(t)
    const whole = fs.readFileSync(file)
    const other = onSqlite(path.join(folder, 'other'), sealKey)
    const altered = path.join(folder, 'altered')
    // What a table refuses before the hash is known, and the bits of a signature's last character that mean nothing.
    const claimedAt = whole.indexOf('"receivedAtMs"') + 1
    const signatureEnd = whole.lastIndexOf('"') - 1
    const lastBits: [number, number][] = Array.from({ length: 15 }, (_, by) => [signatureEnd, by + 1])
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 2), fc.integer({ min: 1, max: 255 }), async (at, by) => {
        const bytes = Buffer.from(whole)
        bytes[at] = (bytes[at] ?? 0) ^ by
        fs.writeFileSync(altered, bytes)
        await assert.rejects(restoreStore(altered, other, null, run), CopyRefused)
        assert.equal(fs.existsSync(other.dataFolder), false)
      }),
      // The first that is taken leaves a folder behind, so a smaller one would be blamed for it.
      { numRuns: 60, endOnFailure: true, examples: [[claimedAt, 1], ...lastBits] },
    )
  })

  test('is refused where its hash was made to fit what was altered', async (t) => {
    const { folder, file, sealKey } = await exported(t)
    const { createHash } = await import('node:crypto')
    const lines = fs.readFileSync(file, 'utf8').split('\n')
    const at = lines.findIndex((line) => line.startsWith('{"row":"token"'))
    lines[at] = String(lines[at]).replace('"used"', '"unused"').replace('mesh-paas', 'gpu-cloud')
    const end = JSON.parse(String(lines.at(-2))) as { end: { sha256: string } }
    end.end.sha256 = createHash('sha256')
      .update(
        lines
          .slice(0, -2)
          .map((line) => `${line}\n`)
          .join(''),
      )
      .digest('hex')
    lines[lines.length - 2] = JSON.stringify(end)
    fs.writeFileSync(file, lines.join('\n'))
    const { message } = await refused(
      restoreStore(file, onSqlite(path.join(folder, 'other'), sealKey), null, run),
      'BACKUP_DAMAGED',
    )
    assert.match(message, /not signed by the key of this domain/)
  })

  test('is refused where it is of another domain, of another format, or for another sealing key', async (t) => {
    const { folder, file, sealKey } = await exported(t)
    const other = onSqlite(path.join(folder, 'other'), sealKey)
    await refused(restoreStore(file, other, 'prod.example', run), 'OTHER_DOMAIN')
    const wrong = path.join(folder, 'wrong.key')
    fs.writeFileSync(wrong, `${'00'.repeat(32)}\n`, { mode: 0o600 })
    await refused(restoreStore(file, onSqlite(path.join(folder, 'other'), wrong), null, run), 'SEALING_KEY_WRONG')
    await refused(restoreStore(file, onSqlite(path.join(folder, 'other')), null, run), 'SEALING_KEY_MISSING')
    const text = fs.readFileSync(file, 'utf8')
    const with_ = (change: (header: string) => string): string => {
      const altered = path.join(folder, 'altered')
      fs.writeFileSync(altered, text.replace(/^.*\n/, change))
      return altered
    }
    for (const another of [1, 3]) {
      const file = with_((header) => header.replace('"format":2', `"format":${another}`))
      const { message } = await refused(restoreStore(file, other, null, run), 'BACKUP_UNKNOWN')
      assert.match(message, new RegExp(`it has format ${another}, and this release of Muster reads format 2`))
    }
    const older = with_((header) => header.replace(/"schema":\d+/, '"schema":1'))
    await refused(restoreStore(older, other, null, run), 'BACKUP_UNKNOWN')
    const chains = with_((header) => header.replace('"chain":1', '"chain":2'))
    await refused(restoreStore(chains, other, null, run), 'BACKUP_DAMAGED')
    await refused(
      restoreStore(
        with_(() => 'hello\n'),
        other,
        null,
        run,
      ),
      'BACKUP_UNKNOWN',
    )
    await refused(restoreStore(path.join(folder, 'nowhere'), other, null, run), 'FILE_UNUSABLE')
    assert.equal(fs.existsSync(other.dataFolder), false)
  })
})
