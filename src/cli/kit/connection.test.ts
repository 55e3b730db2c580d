import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test } from 'node:test'
import { Failure } from './failure.ts'
import { resolveConnection, targetOf } from './connection.ts'
import { unreachable } from './unreachable.ts'

const resolve = (options: object, env: Record<string, string> = {}) =>
  resolveConnection({ output: 'table', ...options }, { MUSTER_CONFIG: 'off', ...env })
const refused = (options: object, env: Record<string, string> = {}) =>
  assert.throws(
    () => resolve(options, env),
    (error) => error instanceof Failure && error.code === 'USAGE',
  )

test('by default a command calls the plane of ./data over its socket, with the key that lies there', () => {
  const connection = resolve({})
  assert.deepEqual(targetOf(connection, null), { kind: 'unix', socketPath: './data/run/operator.sock' })
  assert.equal(connection.keyFile, './data/admin.key')
})

test('on the host of a plane that is set up by a file a command finds the data folder there', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-connection-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'plane.toml')
  fs.writeFileSync(file, 'node_listen = "0.0.0.0:8443"\ndata = "of-plane"\n', { mode: 0o644 })
  const env = { MUSTER_CONFIG: file }
  assert.equal(resolve({}, env).keyFile, `${folder}/of-plane/admin.key`)
  assert.equal(resolve({}, { ...env, MUSTER_DATA: '/srv/a' }).keyFile, '/srv/a/admin.key')
  // Another user who can write it could have operator keys sent elsewhere.
  fs.chmodSync(file, 0o666)
  assert.equal(resolve({}, env).keyFile, './data/admin.key')
  assert.equal(resolve({}, { MUSTER_CONFIG: path.join(folder, 'none') }).keyFile, './data/admin.key')
})

test('an option beats its variable, and --data beats MUSTER_URL', () => {
  const env = { MUSTER_DATA: '/srv/a', MUSTER_KEY_FILE: '/k/env', MUSTER_URL: 'https://far.example:8440' }
  assert.equal(resolve({}, env).where.kind, 'url')
  const near = resolve({ data: '/srv/b', keyFile: '/k/option' }, env)
  assert.deepEqual(near.where, { kind: 'socket', socketPath: '/srv/b/run/operator.sock', dataFolder: '/srv/b' })
  assert.equal(near.keyFile, '/k/option')
})

test('a remote plane is called over TLS only, and a variable that is empty counts as not set', () => {
  const far = resolve({ url: 'https://plane.example:8440', keyFile: 'k' }, { MUSTER_CA: '' })
  assert.equal(far.caFile, null)
  assert.deepEqual(targetOf(far, 'PEM'), { kind: 'https', host: 'plane.example', port: 8440, ca: 'PEM' })
  refused({ url: 'http://plane.example:8440', keyFile: 'k' })
  refused({ url: 'http://10.0.0.1:8440', keyFile: 'k' })
  refused({ url: 'http://127.0.0.1.example:8440', keyFile: 'k' })
})

test('loopback may be called without TLS', () => {
  for (const host of ['127.0.0.1', '127.8.9.1', '[::1]', 'localhost']) {
    const { where } = resolve({ url: `http://${host}:8440`, keyFile: 'k' })
    assert.equal(where.kind === 'url' && where.tls, false, host)
  }
})

test('the key of the local data folder is not sent to an address from the command line', () => {
  refused({ url: 'https://plane.example:8440' })
  refused({ url: 'https://plane.example:8440', data: './data' })
})

test('an address with a password, a path or another scheme is refused', () => {
  for (const url of ['https://u:p@h:1', 'https://h:1/v1', 'https://h:1/?x=1', 'ftp://h', 'h:8440', '']) {
    refused({ url, keyFile: 'k' })
  }
})

test('an unreachable socket says whether a plane runs there and how to start one', () => {
  const failure = (code: string, folder: boolean) =>
    unreachable(resolve({ data: './here' }), Object.assign(new Error('x'), { code }), folder)
  assert.equal(failure('ENOENT', false).message, 'There is no data folder ./here.')
  assert.equal(failure('ENOENT', true).message, 'No plane is running on ./here.')
  assert.match(failure('ECONNREFUSED', true).detail ?? '', /left its socket behind/)
  assert.equal(failure('ENOENT', true).next, 'muster plane --data ./here')
  assert.equal(failure('ENOENT', true).exit, 69)
  assert.equal(failure('EACCES', true).exit, 4)
  assert.equal(failure('ETIMEDOUT', true).exit, 75)
})

test('a certificate that does not verify is distinguished from a plane that is away', () => {
  const far = resolve({ url: 'https://plane.example', keyFile: 'k' })
  const failure = (code: string) => unreachable(far, Object.assign(new Error('x'), { code }), false)
  assert.equal(failure('SELF_SIGNED_CERT_IN_CHAIN').exit, 4)
  assert.match(failure('SELF_SIGNED_CERT_IN_CHAIN').next ?? '', /--ca FILE/)
  assert.match(failure('ERR_TLS_CERT_ALTNAME_INVALID').next ?? '', /--server-name/)
  assert.equal(failure('ECONNREFUSED').exit, 69)
  assert.doesNotMatch(failure('ECONNRESET').next ?? '', /--operator-tls/)
  const plain = resolve({ url: 'http://localhost:8440', keyFile: 'k' })
  const hungUp = unreachable(plain, Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }), false)
  assert.match(hungUp.next ?? '', /--operator-tls: --url https:\/\/localhost:8440 --ca FILE/)
})
