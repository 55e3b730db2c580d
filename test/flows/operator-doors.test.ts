// The doors of the operator listener: who can open them, and whom they answer.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import * as net from 'node:net'
import * as path from 'node:path'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import { buildCertificate } from '#pki/certificate.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { keyId } from '#pki/spki.ts'
import type { ServerIdentity } from '#plane/authority/authority.ts'
import { httpApp } from '#plane/http/http-app.ts'
import { openOperatorListener, type OperatorDoors } from '#plane/http/operator-listener.ts'
import { answer, type Route } from '#plane/http/route.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import { wideLimits } from '../fakes/wide-limits.ts'
import { cleanup } from '../process/cleanup.ts'
import { readReply, type Reply } from '../process/operator-call.ts'
import { tempFolder } from '../process/temp-folder.ts'

const closed: OperatorDoors = { socket: null, http: null, tls: null }

const identity = (serial: string): ServerIdentity => {
  const key = generateKey('p256')
  const name = { cn: 'localhost', o: null, ou: null }
  const nowMs = Date.now()
  const der = buildCertificate(
    {
      serial: Buffer.from(serial, 'hex'),
      subject: name,
      issuer: name,
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + 3_600_000,
      spki: key.spki,
      extensions: {
        ca: null,
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: ['serverAuth'],
        uris: [],
        dnsNames: ['localhost'],
        ips: ['127.0.0.1'],
        authorityKeyId: keyId(key.spki),
        aiaUrl: null,
        cdpUrl: null,
      },
    },
    key,
  )
  return { keyPem: key.pkcs8Pem(), chainPem: toPem('CERTIFICATE', der), notAfterMs: nowMs + 3_600_000, marked: true }
}

const open = async (
  t: TestContext,
  doors: Partial<OperatorDoors>,
  handle: Route['handle'] = async () => answer({ hello: 1 }),
) => {
  let current = identity('01')
  let replaced: (identity: ServerIdentity) => void = () => undefined
  const app = httpApp({
    routes: [{ method: 'GET', path: '/hello', access: 'anyone', summary: 'Answers', handle }],
    authenticate: () => Promise.reject(new Error('nobody is asked for')),
    correlation: () => 'c',
    trouble: () => null,
    callers: 'operators',
    standing: () => ({ kind: 'serving' }),
    onRefusal: () => undefined,
    onAborted: () => undefined,
    log: silentLog,
  })
  const authority = { serverIdentity: () => current, onServerIdentity: (run: typeof replaced) => void (replaced = run) }
  const deps = {
    app,
    authority,
    timers: systemTimers,
    limits: wideLimits,
    balancers: null,
    onTurnedAway: () => undefined,
    beforeStop: () => undefined,
  }
  const listener = await openOperatorListener(deps, { ...closed, ...doors })
  cleanup(t, () => listener.stop(0))
  return {
    listener,
    certificate: () => current.chainPem,
    renew() {
      current = identity('02')
      replaced(current)
    },
  }
}

const get = (options: http.RequestOptions & { ca?: string }): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const request =
      options.ca === undefined
        ? http.request({ path: '/hello', ...options })
        : https.request({ path: '/hello', ...options })
    request.on('error', reject)
    request.on('response', (response) => resolve(readReply(response)))
    request.end()
  })

test('the socket belongs to its owner alone, and so does its folder', async (t) => {
  const socket = path.join(tempFolder(t), 'run', 'operator.sock')
  await open(t, { socket })
  assert.equal(fs.statSync(socket).mode & 0o777, 0o600)
  assert.equal(fs.statSync(path.dirname(socket)).mode & 0o777, 0o700)
  assert.deepEqual((await get({ socketPath: socket })).body, { hello: 1 })
})

test('a socket that a dead plane left is replaced, one that answers is not', async (t) => {
  const socket = path.join(tempFolder(t), 'run', 'operator.sock')
  fs.mkdirSync(path.dirname(socket), { mode: 0o700 })
  await leaveDeadSocket(socket)
  const { listener } = await open(t, { socket })
  await assert.rejects(open(t, { socket }), /another process answers on/)
  assert.deepEqual((await get({ socketPath: socket })).body, { hello: 1 })
  await listener.stop(0)
  assert.equal(fs.existsSync(socket), false)
})

/** As after kill -9: the name is there and nobody listens. */
const leaveDeadSocket = async (socket: string): Promise<void> => {
  const server = net.createServer().listen(`${socket}.alive`)
  await new Promise((resolve) => server.once('listening', resolve))
  // Closing unlinks the name it was bound to; this one it does not know.
  fs.renameSync(`${socket}.alive`, socket)
  await new Promise((resolve) => server.close(resolve))
  assert.ok(fs.lstatSync(socket).isSocket())
}

test('a file that is no socket is left alone, and a folder open to others is refused', async (t) => {
  const folder = tempFolder(t)
  fs.writeFileSync(path.join(folder, 'precious'), 'data')
  await assert.rejects(open(t, { socket: path.join(folder, 'precious') }), /is not a socket/)
  assert.equal(fs.readFileSync(path.join(folder, 'precious'), 'utf8'), 'data')
  fs.mkdirSync(path.join(folder, 'shared'))
  fs.chmodSync(path.join(folder, 'shared'), 0o755)
  await assert.rejects(open(t, { socket: path.join(folder, 'shared', 'operator.sock') }), /needs a folder of mode 0700/)
  await assert.rejects(open(t, { socket: path.join(folder, 'x'.repeat(120)) }), /too long/)
})

test('loopback answers to its own name and port only', async (t) => {
  const { listener } = await open(t, { http: { host: 'localhost', port: 0, shared: false } })
  const { port } = new URL(listener.httpUrl!)
  const as = (headers: Record<string, string>) => get({ host: '127.0.0.1', port, headers })
  assert.equal((await as({ host: `localhost:${port}` })).status, 200)
  assert.equal((await as({ host: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}` })).status, 200)
  for (const headers of [
    { host: `evil.example:${port}` },
    { host: 'localhost' },
    { host: `localhost:${port}`, origin: 'http://evil.example' },
    { host: `localhost:${port}`, origin: 'null' },
  ]) {
    const reply = await as(headers)
    assert.equal(reply.status, 421)
    assert.equal(reply.body.code, 'HOST_NOT_ALLOWED')
  }
})

test('without TLS nothing but loopback is listened on', async (t) => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'plane.example']) {
    await assert.rejects(open(t, { http: { host, port: 0, shared: false } }), /loopback addresses only/, host)
  }
})

test('a door that cannot open closes the ones that did', async (t) => {
  const socket = path.join(tempFolder(t), 'run', 'operator.sock')
  await assert.rejects(open(t, { socket, http: { host: '0.0.0.0', port: 0, shared: false } }))
  assert.equal(fs.existsSync(socket), false)
})

test('TLS is 1.3 without resumption, asks for no certificate, and takes a renewed identity without a restart', async (t) => {
  const { listener, certificate, renew } = await open(t, { tls: { host: '127.0.0.1', port: 0, shared: false } })
  const { port } = new URL(listener.tlsUrl!)
  const call = () => get({ host: 'localhost', port, ca: certificate(), agent: false })
  assert.deepEqual((await call()).body, { hello: 1 })
  for (const round of ['first', 'renewed']) {
    const first = await handshake(Number(port), certificate())
    assert.equal(first.protocol, 'TLSv1.3', round)
    const again = await handshake(Number(port), certificate(), { session: first.session })
    assert.equal(again.resumed, false, round)
    await assert.rejects(handshake(Number(port), certificate(), { maxVersion: 'TLSv1.2' }), round)
    renew()
  }
  const reply = await get({
    host: 'localhost',
    port,
    ca: certificate(),
    agent: false,
    headers: { origin: 'https://evil.example' },
  })
  assert.equal(reply.body.code, 'HOST_NOT_ALLOWED')
})

const handshake = (port: number, ca: string, options: tls.ConnectionOptions = {}) =>
  new Promise<{ protocol: string | null; session: Buffer; resumed: boolean }>((resolve, reject) => {
    let session: Buffer = Buffer.alloc(0)
    const socket = tls.connect({ host: 'localhost', port, ca, ...options })
    socket.on('session', (offered) => void (session = offered))
    socket.on('error', reject)
    socket.on('secureConnect', () => {
      const protocol = socket.getProtocol()
      const resumed = socket.isSessionReused()
      socket.write('GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      socket.resume().on('end', () => resolve({ protocol, session, resumed }))
    })
  })

test('bytes that are no HTTP request are answered as a refusal, and the socket is closed', async (t) => {
  const { listener } = await open(t, { http: { host: '127.0.0.1', port: 0, shared: false } })
  const text = await new Promise<string>((resolve, reject) => {
    const socket = net.connect(Number(new URL(listener.httpUrl!).port), '127.0.0.1')
    let received = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => void (received += chunk))
    socket.on('error', reject).on('end', () => resolve(received))
    socket.write('\u0000\u0001 nonsense\r\n\r\n')
  })
  assert.match(text, /^HTTP\/1\.1 400 /)
  assert.match(text, /"code":"REQUEST_INVALID"/)
})

test('a stop lets the call under way finish, and does not wait for the connection it came on', async (t) => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const slow = async () => {
    ask()
    await released
    return answer({ hello: 2 })
  }
  const socket = path.join(tempFolder(t), 'run', 'operator.sock')
  const { listener } = await open(t, { socket }, slow)
  const agent = new http.Agent({ keepAlive: true })
  cleanup(t, () => agent.destroy())
  const reply = get({ socketPath: socket, agent })
  await asked
  const stopped = listener.stop(60_000)
  release()
  assert.deepEqual((await reply).body, { hello: 2 })
  await stopped
})
