import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test, type TestContext } from 'node:test'
import { StoreFault, StoreRefused, type StoreRefusedCode } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { storeContract, type StoreUnderTest } from './contract.ts'
import {
  makeSigner,
  newNode,
  note,
  openStore,
  steppedTimers,
  type StoreOptions,
  temporaryFolder,
  workplace,
} from './harness.ts'
import { fleetRowsContract } from './fleet.ts'
import { issuerRowsContract } from './issuers.ts'
import { storeModel } from './model.ts'

const openEmpty = async (): Promise<StoreUnderTest> => {
  const folder = temporaryFolder()
  const signer = makeSigner()
  let store = await openStore(folder, signer)
  return {
    store,
    async reopen() {
      await store.close()
      store = await openStore(folder, signer)
      return store
    },
    async remove() {
      await store.close()
      fs.rmSync(folder, { recursive: true })
    },
  }
}

storeContract('SQLite', openEmpty)
storeModel('SQLite', openEmpty)
fleetRowsContract('SQLite', openEmpty)
issuerRowsContract('SQLite', openEmpty)

const opened = async (t: TestContext, more: StoreOptions = {}) => {
  const { folder, atEnd } = workplace(t)
  const store = await openStore(folder, makeSigner(), more)
  atEnd(() => store.close())
  return { store, folder, atEnd, file: path.join(folder, 'muster.db') }
}

const refusal = async (opening: Promise<Store>, code: StoreRefusedCode): Promise<StoreRefused> => {
  const error = await opening.then(
    () => assert.fail('the store opened'),
    (thrown: unknown) => thrown,
  )
  assert(error instanceof StoreRefused, String(error))
  assert.equal(error.code, code)
  assert.notEqual(error.next, '')
  return error
}

describe('opening', () => {
  test('only the owner can read any of the files', async (t) => {
    const { store, folder } = await opened(t)
    await store.commit(newNode('n1'))
    for (const name of ['muster.db', 'muster.db-wal', 'muster.db-shm', 'plane.lock'])
      assert.equal(fs.statSync(path.join(folder, name)).mode & 0o777, 0o600, name)
  })

  test('a second plane is refused with the process that has the folder, and the first goes on undisturbed', async (t) => {
    const { store, folder } = await opened(t)
    const program = `
      import { makeSigner, openStore } from ${JSON.stringify(path.join(import.meta.dirname, 'harness.ts'))}
      await openStore(process.argv[1], makeSigner()).then(
        () => console.log('opened'), (error) => console.log(error.code + ' ' + error.message))`
    const other = spawnSync(process.execPath, ['--input-type=module', '-e', program, folder], { encoding: 'utf8' })
    assert.match(other.stdout, new RegExp(`^DATA_FOLDER_IN_USE .*process ${process.pid}\\b`))
    await refusal(openStore(folder, makeSigner()), 'DATA_FOLDER_IN_USE')
    // A refused attempt from the same process must not have dropped the locks that keep others out.
    const third = spawnSync(process.execPath, ['--input-type=module', '-e', program, folder], { encoding: 'utf8' })
    assert.match(third.stdout, /^DATA_FOLDER_IN_USE /)
    assert.notEqual(await store.commit(newNode('n1')), 'lost-race')
  })

  test('a folder is free again once its plane has closed', async (t) => {
    const { store, folder } = await opened(t)
    await store.close()
    assert.deepEqual(fs.readdirSync(folder).sort(), ['muster.db', 'muster.reserve', 'plane.lock'])
    await (await openStore(folder, makeSigner())).close()
  })

  test('a newer schema is refused and left as it is', async (t) => {
    const { store, folder, file } = await opened(t)
    await store.close()
    edit(file, 'PRAGMA user_version = 999')
    const before = fs.readFileSync(file)
    const { message } = await refusal(openStore(folder, makeSigner()), 'SCHEMA_TOO_NEW')
    assert.match(message, /schema 999/)
    assert.deepEqual(fs.readFileSync(file), before)
  })

  test('a foreign database, and a file that is none, are refused and left as they are', async (t) => {
    const { folder } = workplace(t)
    const file = path.join(folder, 'muster.db')
    edit(file, 'CREATE TABLE theirs (x)')
    await refusal(openStore(folder, makeSigner()), 'NOT_A_STORE')
    edit(file, 'INSERT INTO theirs VALUES (1)')
    fs.writeFileSync(file, 'these bytes are not a database, and there are more than enough of them'.repeat(50))
    await refusal(openStore(folder, makeSigner()), 'NOT_A_STORE')
  })

  test('trouble with the folder itself is a fault that keeps its cause', async (t) => {
    const file = path.join(workplace(t).folder, 'file')
    fs.writeFileSync(file, '')
    await assert.rejects(openStore(path.join(file, 'data'), makeSigner()), (error) => {
      return error instanceof StoreFault && (error.cause as NodeJS.ErrnoException).code === 'ENOTDIR'
    })
  })
})

test('commits of one turn share one transaction, and so one signed head', async (t) => {
  const { store, file } = await opened(t)
  await Promise.all(Array.from({ length: 40 }, (_, index) => store.commit(newNode(`n${index}`))))
  const signed = query(file, 'SELECT sequence FROM journal WHERE signature IS NOT NULL')
  assert.deepEqual(
    signed.map((row) => row['sequence']),
    [40],
  )
})

test('observations reach the file every few seconds without a commit', async (t) => {
  const { timers, tick } = steppedTimers()
  const { store, file } = await opened(t, { timers })
  store.observe('n1', { lastSeenMs: 5 })
  const seen = () => query(file, 'SELECT node, last_seen_ms FROM observation')
  assert.equal(seen().length, 0)
  tick()
  assert.deepEqual(
    seen().map((row) => ({ ...row })),
    [{ node: 'n1', last_seen_ms: 5 }],
  )
})

test('while another process holds the file commits fail whole, trouble says so, and the next success ends it', async (t) => {
  const { timers, tick } = steppedTimers()
  const { store, file, atEnd } = await opened(t, { timers })
  const other = new DatabaseSync(file)
  atEnd(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const outcomes = await Promise.allSettled([store.commit(newNode('n1')), store.commit(newNode('n2'))])
  for (const outcome of outcomes) assert(outcome.status === 'rejected' && outcome.reason instanceof StoreFault)
  assert.match(store.trouble() ?? '', /locked/)
  other.exec('ROLLBACK')
  tick()
  assert.equal(store.trouble(), null, 'a small write of the store itself found out')
  assert.notEqual(await store.commit(newNode('n1')), 'lost-race')
  assert.equal((await store.journal.verify()).kind, 'intact')
})

const edit = (file: string, sql: string): void => {
  const database = new DatabaseSync(file)
  database.exec(sql)
  database.close()
}

const query = (file: string, sql: string): readonly Record<string, unknown>[] => {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return database.prepare(sql).all()
  } finally {
    database.close()
  }
}

test('the entries of one type about one node are found without walking past those of all others', async (t) => {
  const { folder, atEnd } = workplace(t)
  const store = await openStore(folder, makeSigner())
  atEnd(() => store.close())
  await store.commit(newNode('quiet'))
  const crowd = Array.from({ length: 20_000 }, (_, at) => note(`n${at}`))
  for (let from = 0; from < crowd.length; from += 500)
    await store.commit({ reads: [], writes: [], entries: [note(), ...crowd.slice(from, from + 500)] })
  const query = { after: null, last: 50, limit: 50, node: 'quiet' }
  // The quickest of many: what else the machine does slows some of them down, and not all.
  const took = async (type: 'node.registered' | null): Promise<number> => {
    let quickestMs = Infinity
    for (let round = 0; round < 20; round++) {
      const startMs = performance.now()
      assert.equal((await store.journal.read({ ...query, type })).length, 1)
      quickestMs = Math.min(quickestMs, performance.now() - startMs)
    }
    return quickestMs
  }
  const byNodeMs = await took(null)
  // Measured: as long; a walk through the type takes hundreds of times as long.
  assert((await took('node.registered')) < 20 * byNodeMs + 1)
})
