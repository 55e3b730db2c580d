import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { planeConfig, ConfigProblem } from './config.ts'
import { storeTarget, tlsFor } from './store-target.ts'

const fileIn = (t: TestContext, content: string, mode = 0o600): string => {
  const file = path.join(tempFolder(t), 'file')
  fs.writeFileSync(file, content, { mode })
  fs.chmodSync(file, mode)
  return file
}

const targetOf = (env: Record<string, string>) => {
  const target = storeTarget({ HOME: '/nowhere', ...env })
  if (typeof target === 'string') throw new Error(target)
  return target
}

const problemOf = (env: Record<string, string>): string => {
  const target = storeTarget({ HOME: '/nowhere', ...env })
  assert.ok(typeof target === 'string')
  return target
}

test('a file gives the whole address, and a password that is changed in it is seen without a restart', async (t) => {
  const file = fileIn(t, 'postgres://muster:before@127.0.0.1:5433/fleet\n')
  const target = targetOf({ MUSTER_STORE_FILE: file })
  const [at] = target.hosts
  assert.deepEqual(at, { host: '127.0.0.1', port: 5433 })
  assert.deepEqual([target.user, target.database, target.tls], ['muster', 'fleet', null])
  assert.equal(await target.password({ host: '127.0.0.1', port: 5433 }), 'before')
  fs.writeFileSync(file, 'postgres://muster:after@127.0.0.1:5433/fleet\n')
  assert.equal(await target.password({ host: '127.0.0.1', port: 5433 }), 'after')
})

test('the variables of PostgreSQL are understood, with a password for each host', async (t) => {
  const passfile = fileIn(t, 'db1:*:*:*:one\ndb2:*:*:*:two\n')
  const env = { PGHOST: 'db1,db2', PGPORT: '5433', PGUSER: 'muster', PGDATABASE: 'fleet', PGPASSFILE: passfile }
  const target = targetOf(env)
  assert.deepEqual(target.hosts, [
    { host: 'db1', port: 5433 },
    { host: 'db2', port: 5433 },
  ])
  assert.deepEqual(target.tls, { ca: null })
  assert.equal(await target.password({ host: 'db1', port: 5433 }), 'one')
  assert.equal(await target.password({ host: 'db2', port: 5433 }), 'two')
  assert.equal(await targetOf({ ...env, PGPASSWORD: 'said' }).password({ host: 'db2', port: 5433 }), 'said')
})

test('a file of secrets that others may read is refused, and so is one that is not there', (t) => {
  const open = fileIn(t, 'postgres://u:hunter2@/db?host=/run', 0o644)
  assert.match(problemOf({ MUSTER_STORE_FILE: open }), /chmod 600/)
  assert.match(problemOf({ PGHOST: '/run', PGPASSFILE: fileIn(t, '*:*:*:*:hunter2', 0o640) }), /chmod 600/)
  assert.match(problemOf({ MUSTER_STORE_FILE: '/nowhere/it' }), /no file/)
  assert.match(problemOf({ PGHOST: '/run', PGPASSFILE: '/nowhere/it' }), /no file/)
  assert.match(problemOf({ MUSTER_STORE_FILE: tempFolder(t) }), /is no file/)
  assert.match(problemOf({ PGHOST: 'db.example', PGSSLROOTCERT: tempFolder(t) }), /holds no certificates/)
  // What systemd gives to one user looks as if its group could read it.
  const credential = { MUSTER_STORE_FILE: open, CREDENTIALS_DIRECTORY: path.dirname(open) }
  assert.deepEqual(targetOf(credential).hosts, [{ host: '/run', port: 5432 }])
})

test('an error about a file never repeats its content', (t) => {
  const file = fileIn(t, 'postgres://u:hunter2@h/d?sslmod=hunter2')
  assert.doesNotMatch(problemOf({ MUSTER_STORE_FILE: file }), /hunter2/)
  const two = problemOf({
    MUSTER_STORE_FILE: fileIn(t, 'postgres://u:hunter2@127.0.0.1/d\npostgres://u:hunter3@h/d\n'),
  })
  assert.match(two, /more than one line/)
  assert.doesNotMatch(two, /hunter/)
  assert.match(problemOf({ MUSTER_STORE_FILE: fileIn(t, '') }), /is not postgres:/)
})

test('without a database address both ways of giving one are named', () => {
  assert.match(problemOf({}), /MUSTER_STORE_FILE.*PGHOST/)
  assert.match(problemOf({ PGHOST: 'h', PGSERVICE: 's' }), /PGSERVICE/)
})

test('what leaves this machine is encrypted and its server verified, or refused', () => {
  const away = [{ host: 'db1', port: 5432 }]
  const loopback = [{ host: '127.0.0.1', port: 5432 }]
  const socket = [{ host: '/run', port: 5432 }]
  assert.deepEqual([tlsFor(away, null), tlsFor(loopback, null), tlsFor(socket, null)], ['verified', 'none', 'none'])
  assert.deepEqual([tlsFor(away, 'verify-full'), tlsFor(loopback, 'verify-full')], ['verified', 'verified'])
  assert.deepEqual([tlsFor(loopback, 'disable'), tlsFor(socket, 'require')], ['none', 'none'])
  for (const mode of ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'none']) {
    assert.equal(typeof tlsFor(away, mode), 'object', mode)
    assert.equal(typeof tlsFor([...loopback, ...away], mode), 'object', mode)
  }
  for (const mode of ['require', 'verify-ca']) assert.equal(typeof tlsFor(loopback, mode), 'object', mode)
})

test('an address given to --store is refused and not repeated', () => {
  const refuses = (given: string) => (error: unknown) =>
    error instanceof ConfigProblem && error.message.includes('MUSTER_STORE_FILE') && !error.message.includes(given)
  for (const given of ['postgres://u:hunter2@h/d', 'postgresql://h', 'hunter2', 'PostgreS', '']) {
    assert.throws(() => planeConfig({ store: given }, {}), given === '' ? ConfigProblem : refuses(given))
    assert.throws(() => planeConfig({}, { MUSTER_STORE: given }), ConfigProblem)
  }
})

test('several replicas need PostgreSQL', () => {
  assert.throws(() => planeConfig({ replicas: '2' }, {}), ConfigProblem)
  assert.equal(planeConfig({ replicas: '1' }, {}).replicas, 1)
  const env = { PGHOST: '/run', HOME: '/nowhere' }
  assert.equal(planeConfig({ store: 'postgres', replicas: '3' }, env).replicas, 3)
  for (const wrong of ['0', '65', 'x', '-1']) {
    assert.throws(() => planeConfig({ store: 'postgres', replicas: wrong }, env), ConfigProblem)
  }
})
