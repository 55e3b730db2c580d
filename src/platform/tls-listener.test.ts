import assert from 'node:assert/strict'
import * as https from 'node:https'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import { destroyWhenSent, peerCertificate, type SecuredSocket } from './tls-server.ts'
import { openTlsListener } from './tls-listener.ts'
import { systemTimers } from './timers.ts'
import type { HttpRequest, HttpResponse } from './http-server.ts'
import { cleanup } from '../../test/process/cleanup.ts'
import { eventually, within } from '../../test/process/eventually.ts'
import { localServerIdentity } from '../../test/process/local-tls-server.ts'
import { selfSigned } from '../../test/process/self-signed.ts'

type Handler = (request: HttpRequest, response: HttpResponse) => void

type Opened = { readonly listening?: boolean; readonly clientRoots?: readonly string[] | null }

const open = async (
  t: TestContext,
  threads: number,
  handler: Handler,
  { listening = true, clientRoots = null }: Opened = {},
) => {
  const identity = localServerIdentity()
  const optionsOf = (server: typeof identity) => ({ ...server, clientRoots, rejectUnauthorized: true })
  const upgraded: tls.TLSSocket[] = []
  const callers: tls.TLSSocket[] = []
  const listener = openTlsListener(systemTimers, {
    options: optionsOf(identity),
    threads,
    handler(request, response) {
      callers.push(request.socket as tls.TLSSocket)
      handler(request, response)
    },
    onUpgrade: (_request, socket) => {
      upgraded.push(socket as tls.TLSSocket)
      socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
      socket.on('data', (bytes: Buffer) => socket.write(bytes))
    },
    bounds: {
      connections: 64,
      perSource: null,
      perCaller: null,
      timers: systemTimers,
      onCut: () => {},
      unreadable: () => '',
    },
    balancers: null,
    onHandshakeFailed: () => {},
  })
  let stopped = false
  const stop = async (withinMs: number): Promise<void> => {
    if (stopped) return
    stopped = true
    await listener.stop(withinMs)
  }
  cleanup(t, () => stop(0))
  const port = listening ? await listener.listen({ host: '127.0.0.1', port: 0, shared: false }) : 0
  const call = (body = '', client: tls.ConnectionOptions = {}): Promise<string> =>
    new Promise((resolve, reject) => {
      const request = https.request(
        { host: '127.0.0.1', port, ca: identity.chainPem, agent: false, method: 'POST', ...client },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => (text += chunk))
          response.on('end', () => resolve(text))
        },
      )
      request.on('error', reject)
      request.end(body)
    })
  const connect = async (ca = identity.chainPem): Promise<tls.TLSSocket> => {
    const socket = tls.connect({ host: '127.0.0.1', port, ca, servername: 'localhost' })
    cleanup(t, () => void socket.destroy())
    socket.on('error', () => {})
    await within('a handshake', 10_000, new Promise((resolve) => socket.once('secureConnect', resolve)))
    return socket
  }
  return { listener, optionsOf, callers, upgraded, call, connect, stop }
}

for (const threads of [0, 1, 2]) {
  test(`${threads} threads: a call is answered with the bytes that it sent, however many`, async (t) => {
    const { call } = await open(t, threads, (request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => response.end(Buffer.concat(parts)))
    })
    for (const body of ['', 'grüße ✓', 'x'.repeat(3_000_000)]) assert.equal(await call(body), body)
    const bodies = Array.from({ length: 12 }, (_, at) => `call ${at}`)
    assert.deepEqual(await Promise.all(bodies.map((body) => call(body))), bodies)
  })

  test(`${threads} threads: the handler sees the certificate that the client has presented`, async (t) => {
    const { keyPem, chainPem } = selfSigned('gpu-001')
    const shown: Handler = (request, response) =>
      response.end(peerCertificate(request.socket as SecuredSocket)?.toString('base64') ?? 'none')
    const asked = await open(t, threads, shown, { clientRoots: [chainPem] })
    const der = chainPem.replace(/-----.*-----/g, '').replaceAll('\n', '')
    assert.equal(await asked.call('', { key: keyPem, cert: chainPem }), der)
    const notAsked = await open(t, threads, shown)
    assert.equal(await notAsked.call('', { key: keyPem, cert: chainPem }), 'none')
  })

  test(`${threads} threads: a connection that was upgraded carries bytes both ways until it is cut`, async (t) => {
    const { connect, upgraded } = await open(t, threads, () => assert.fail('a request'))
    const socket = await connect()
    const received: Buffer[] = []
    socket.on('data', (bytes: Buffer) => received.push(bytes))
    const text = (): string => Buffer.concat(received).toString('latin1')
    const until = (wanted: string) => eventually(`the end of what came: ${wanted}`, () => text().endsWith(wanted))
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    await until('\r\n\r\n')
    socket.write(Buffer.from([0, 255, 128, 10]))
    await until('\x00\xff\x80\n')
    const closed = new Promise((resolve) => socket.once('close', resolve))
    upgraded[0]?.destroy()
    await within('the client to notice', 10_000, closed)
  })

  test(`${threads} threads: what was written last before a connection ends arrives, however much was written in that turn`, async (t) => {
    const { connect, upgraded } = await open(t, threads, () => assert.fail('a request'))
    const socket = await connect()
    let text = ''
    socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')))
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    const served = await eventually('the upgrade', () => upgraded[0])
    const closed = new Promise((resolve) => socket.once('close', resolve))
    for (const word of ['one ', 'two ', 'last']) served.write(word)
    destroyWhenSent(systemTimers, served, 10_000)
    await within('the end', 10_000, closed)
    assert.match(text, /one two last$/)
    await eventually('the end here', () => served.destroyed)
  })

  test(`${threads} threads: a caller that closes its side right after its request is answered`, async (t) => {
    const { connect } = await open(t, threads, (_request, response) => response.end('answered'))
    const socket = await connect()
    const text = new Promise<string>((resolve) => {
      let all = ''
      socket.on('data', (bytes: Buffer) => (all += bytes.toString()))
      socket.on('close', () => resolve(all))
    })
    socket.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.match(await within('the end', 10_000, text), /answered/)
  })

  test(`${threads} threads: bytes in many small records arrive whole and in order`, async (t) => {
    const { connect } = await open(t, threads, (request, response) => {
      let body = ''
      // Read late, so that the sender has to wait.
      setTimeout(() => request.on('data', (part: Buffer) => (body += part.toString())), 100)
      request.on('end', () => response.end(body))
    })
    const socket = await connect()
    const body = Array.from({ length: 3000 }, (_, at) => String(at % 10)).join('')
    socket.setNoDelay(true)
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`)
    for (const letter of body) socket.write(letter)
    let all = ''
    socket.on('data', (bytes: Buffer) => (all += bytes.toString()))
    await eventually('the whole body', () => all.endsWith(body))
  })

  test(`${threads} threads: a connection that is kept without a request is closed in the end`, async (t) => {
    const { connect, callers } = await open(t, threads, (_request, response) => response.end('answered'))
    const socket = await connect()
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await within('an answer', 10_000, new Promise((resolve) => socket.once('data', resolve)))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    // Its keep-alive time is set once its answer is sent; here it is over soon.
    const shortened = setInterval(() => callers[0]?.setTimeout(1), 20)
    cleanup(t, () => clearInterval(shortened))
    await within('the end', 10_000, closed)
  })

  test(`${threads} threads: a new server certificate is shown to the next client`, async (t) => {
    const { listener, optionsOf, connect } = await open(t, threads, (_request, response) => response.end())
    const next = localServerIdentity()
    listener.replaceIdentity(optionsOf(next))
    const socket = await connect(next.chainPem)
    assert.equal(socket.authorized, true)
    assert.equal(socket.getProtocol(), 'TLSv1.3')
    assert.equal(socket.isSessionReused(), false)
  })

  test(`${threads} threads: a call that is under way is answered when the listener stops, and no other gets in`, async (t) => {
    let answer = (): void => {}
    const began = new Promise<void>((resolve) => {
      answer = resolve
    })
    const { call, stop } = await open(t, threads, (_request, response) => {
      answer()
      setTimeout(() => response.end('answered'), 300)
    })
    const asked = call('')
    await began
    const stopping = stop(10_000)
    assert.equal(await asked, 'answered')
    await stopping
    await assert.rejects(call(''))
  })
}

test('the listener says why it cannot listen, also where threads do', async (t) => {
  const { listener } = await open(t, 1, () => {}, { listening: false })
  await assert.rejects(listener.listen({ host: '192.0.2.1', port: 0, shared: false }), {
    code: /EADDRNOTAVAIL|EACCES/,
  })
})
