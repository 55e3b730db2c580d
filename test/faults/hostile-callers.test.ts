// A1, A2, A4: strangers attack every listener of a real plane with a small heap, over real TLS where it speaks TLS. An
// honest node is answered throughout and hardly slower, memory stays bounded, and the log gets a counted line.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import * as http from 'node:http'
import * as net from 'node:net'
import { text } from 'node:stream/consumers'
import * as tls from 'node:tls'
import { test, type TestContext } from 'node:test'
import { attack, doorsOf, metricOf, type Door } from '../process/attackers.ts'
import { activeNode } from '../process/active-node.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { openPlaneLog } from '../process/plane-log.ts'
import { recoverableNode } from '../process/raw-recovery.ts'
import { residentBytes } from '../process/resident-memory.ts'
import { shared } from '../process/shared-plane.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { startAttack } from '../process/under-attack.ts'

const long = process.env['MUSTER_LONG'] === '1'
/** At least; and until every attack has come to every listener. */
const callsUnderAttack = long ? 500 : 50
const megabyte = 1024 * 1024
const smallHeap = { NODE_OPTIONS: '--max-old-space-size=256' }

const startLogged = async (t: Scope, args: readonly string[] = []) => {
  const log = openPlaneLog(t, 'info')
  const { env = {}, args: logged = [], ...rest } = log.options
  const plane = await startPlane(t, { ...rest, env: { ...env, ...smallHeap }, args: [...logged, ...args] })
  return { plane, log }
}

/** Operators by loopback HTTP. */
const loopback = shared((scope) => startLogged(scope))

const metric = async (plane: Plane, name: string, labels = ''): Promise<number> =>
  metricOf((await plane.api('GET', '/metrics')).body, name, labels)

/** What is sent, to a listener without TLS; resolves with everything that comes until the plane is silent or gone. */
const exchange = (t: TestContext, url: string, text: string, localAddress = '127.0.0.1'): (() => string) => {
  const target = { host: '127.0.0.1', port: Number(new URL(url).port), localAddress }
  const socket = net.connect(target, () => socket.write(text))
  cleanup(t, () => void socket.destroy())
  let received = ''
  socket.on('error', () => {}).on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  return () => received
}

/** What a caller without proof is answered at that door, over a connection of its own. */
const statusAt = async (t: TestContext, { port, roots, path }: Door): Promise<number> => {
  const target = { host: '127.0.0.1', port, localAddress: '127.0.0.88' }
  const socket =
    roots === null ? net.connect(target) : tls.connect({ ...target, ca: [...roots], servername: 'localhost' })
  cleanup(t, () => void socket.destroy())
  let received = ''
  socket.on('error', () => {}).on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`)
  return Number(await eventually('a status', () => /^HTTP\/1\.1 (\d+)/.exec(received)?.[1]))
}

test('A1: twelve callers without a key, who pipeline GET /openapi.json and read nothing, cost the plane little', async (t) => {
  const { plane } = loopback()
  const node = await activeNode(plane, 'gpu-001')
  const before = residentBytes(plane.pid)
  const port = Number(new URL(plane.operatorUrl).port)
  const request = `GET /openapi.json HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`
  for (let each = 0; each < 12; each++) {
    const socket = net.connect({ host: '127.0.0.1', port }, () => socket.write(request.repeat(65_536 / request.length)))
    socket.on('error', () => {}).pause()
    cleanup(t, () => void socket.destroy())
  }
  for (let each = 0; each < 5; each++) assert.equal((await node.confirm()).status, 200)
  await eventually('all to be cut off', async () => {
    // Those that come after the first were cut are slowed down instead.
    const of = (reason: string) =>
      metric(plane, 'muster_connections_cut_total', `listener="operator",reason="${reason}"`)
    return (await of('pipelined')) + (await of('source_pace')) === 12
  })
  const grown = residentBytes(plane.pid) - before
  assert.ok(grown < 100 * megabyte, `grew by ${Math.round(grown / megabyte)} MiB`)
  assert.ok(plane.running())
})

test('every listener holds out against every attack at once, and an honest node is served as before', async (t) => {
  const { plane, log } = await startLogged(t, ['--operator-tls'])
  const machine = await recoverableNode(plane, 'gpu-001')
  const { roots } = await plane.target()
  const doors = doorsOf(plane, roots, machine.target.roots, '/crl/00aa.crl')
  const answers: (number | string)[] = []
  const startedMs = performance.now()
  const of = (name: string, reason: string): Promise<number> =>
    metric(plane, 'muster_connections_cut_total', `listener="${name}",reason="${reason}"`)
  // Operators without a key are refused before their body is read, so there is nothing to abort.
  const hungUp = (name: string): Promise<number> =>
    name === 'operator' ? Promise.resolve(1) : metric(plane, 'muster_requests_aborted_total', `listener="${name}"`)
  const missing = async (): Promise<string | null> => {
    for (const { name } of doors) {
      if ((await of(name, 'pipelined')) === 0) return `no pipeliner was cut off at ${name}`
      if ((await hungUp(name)) === 0) return `no hang-up was counted at ${name}`
    }
    return null
  }
  const bytesBefore = residentBytes(plane.pid)
  let [mostBytes, lacks]: [number, string | null] = [0, '']
  const stop = await startAttack(t, doors, { each: 4, idle: false })
  // How much slower an honest call becomes depends on what else the machine does: `npm run bench hostile` measures it.
  await eventually(
    'every attack to come to every listener',
    async () => {
      answers.push(await machine.node.confirm().then(({ status }) => status, String))
      mostBytes = Math.max(mostBytes, residentBytes(plane.pid))
      lacks = await missing()
      return answers.length >= callsUnderAttack && lacks === null
    },
    { withinMs: long ? 300_000 : 60_000, everyMs: 5 },
  ).catch((error: unknown) => assert.fail(`${String(error)}: ${lacks}, ${answers.length} honest calls`))
  await stop()
  assert.deepEqual([...new Set(answers)], [200], 'every honest call is answered')
  const grown = mostBytes - bytesBefore
  assert.equal((await plane.api('GET', '/readyz')).status, 200)
  assert.equal((await machine.recover()).status, 200, 'a machine recovers')
  assert.ok(grown < 200 * megabyte, `grew by ${Math.round(grown / megabyte)} MiB`)

  const lines = log.lines()
  const about = lines.filter(({ msg }) => /a connection was closed/.test(msg))
  assert.ok(about.length > 0, 'it is said')
  const minutes = Math.ceil(1 + (performance.now() - startedMs) / 60_000)
  assert.ok(about.length <= 5 * minutes * 2, `${about.length} lines about connections`)
  assert.deepEqual(
    lines.filter(({ level }) => Number(level) >= 50),
    [],
    'nothing strangers do is an error',
  )
})

test('a caller that does not read, writes slowly or sends too much is closed, and the next caller is served', async (t) => {
  const { plane } = await startLogged(t, ['--operator-tls'])
  const { target } = await recoverableNode(plane, 'gpu-001')
  const { roots } = await plane.target()
  const doors = doorsOf(plane, roots, target.roots, '/crl/00aa.crl')
  const kinds = long ? (['non-readers', 'slow writers', 'large bodies'] as const) : (['large bodies'] as const)
  const running = doors.flatMap((door, at) =>
    kinds.map((kind, number) => ({
      name: `${kind} at ${door.name}`,
      ...attack(kind, door, `127.0.${at + 20}.${number + 1}`, 2),
    })),
  )
  cleanup(t, () => running.forEach((attackers) => attackers.stop()))
  // An answer that fits into the buffers of the kernel is never unread for the plane.
  const closes = running.filter(({ name }) => !name.startsWith('non-readers') || name.endsWith('operator'))
  for (const { name, closed } of closes)
    await eventually(`${name} to be closed`, () => closed() >= 2, { withinMs: 120_000 })
  for (const door of doors)
    assert.equal(await statusAt(t, door), door.name === 'node' || door.name === 'operator' ? 200 : 404)
})

test('the Unix socket and the metrics of an agent hold out against pipeliners', async (t) => {
  const { plane } = loopback()
  const { body } = await plane.api('POST', '/v1/tokens', { node: 'metrics-001' })
  const agent = startAgent(t, { join: body.join, args: ['--metrics-listen', '127.0.0.1:0'] })
  const port = await eventually(
    'the port of its metrics',
    () => /"port":(\d+).*metrics are served/.exec(agent.stderr())?.[1],
  )
  const metricsUrl = `http://127.0.0.1:${port}/metrics`
  const request = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'
  for (const at of [{ path: plane.socket }, { host: '127.0.0.1', port: Number(port) }])
    for (let each = 0; each < 5; each++) {
      const socket = net.connect(at, () => socket.write(request.repeat(65_536 / request.length)))
      cleanup(t, () => void socket.destroy())
      const closed = new Promise((resolve) =>
        socket
          .resume()
          .on('error', () => {})
          .once('close', resolve),
      )
      await within('a pipeliner to be cut off', 30_000, closed)
    }
  assert.equal((await plane.api('GET', '/readyz')).status, 200)
  // Slowed down for as long as what was cut had cost.
  await eventually('metrics', async () => (await fetch(metricsUrl).catch(() => null))?.status === 200)
})

test('A4: callers that hang up in the middle of a body are counted and charged, and not logged', async () => {
  const { plane, log } = loopback()
  const port = Number(new URL(plane.operatorUrl).port)
  const head = `POST /v1/tokens HTTP/1.1\r\nHost: localhost:${port}\r\nAuthorization: Bearer ${plane.adminKey}\r\n`
  const quiet = log.lines().length
  for (let each = 0; each < 150; each++)
    await new Promise<void>((resolve) => {
      const socket = net.connect({ host: '127.0.0.1', port, localAddress: '127.0.0.66' }, () =>
        socket.write(`${head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"node":`, () =>
          socket.end(),
        ),
      )
      socket
        .resume()
        .on('error', () => {})
        .once('close', () => resolve())
    })
  const aborted = () => metric(plane, 'muster_requests_aborted_total', 'listener="operator"')
  const slowedDown = () => metric(plane, 'muster_connections_cut_total', 'listener="operator",reason="source_pace"')
  await eventually('all to be counted', async () => (await aborted()) + (await slowedDown()) >= 150)
  // That the source was slowed down is counted in one line; a caller that hangs up is not worth one.
  const lines = log.lines().slice(quiet)
  assert.ok(lines.length <= 1, JSON.stringify(lines))
  assert.ok(
    lines.every(({ code }) => code === 'source_pace'),
    JSON.stringify(lines),
  )
})

test('what two readers could understand differently is refused, and Expect after the Host rule', async (t) => {
  const { plane } = loopback()
  const host = new URL(plane.operatorUrl).host
  const answerTo = async (...headers: string[]): Promise<string> => {
    const text = `GET /healthz HTTP/1.1\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`
    // Not from where the attacks before came from, which is slowed down for a while.
    const received = exchange(t, plane.operatorUrl, text, '127.0.0.77')
    const whole = await eventually('an answer', () => /^HTTP\/1\.1 (\d+)[^]*\}/.exec(received()))
    return `${whole[1]} ${/"code":"(\w+)"/.exec(received())?.[1] ?? ''}`.trim()
  }
  const own = `Host: ${host}`
  const key = `Authorization: Bearer ${plane.adminKey}`
  assert.equal(await answerTo(own), '200')
  assert.equal(await answerTo(own, own), '400 REQUEST_INVALID')
  assert.equal(await answerTo(own, 'host: elsewhere.example'), '400 REQUEST_INVALID')
  assert.equal(await answerTo(own, key, 'authorization: Bearer other'), '400 REQUEST_INVALID')
  assert.equal(
    await answerTo(own, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
    '200',
  )
  assert.equal(await answerTo('Host: elsewhere.example', 'Expect: x'), '421 HOST_NOT_ALLOWED')
  assert.equal(await answerTo(own, 'Expect: x'), '400 REQUEST_INVALID')
})

test('an upgrade to anything but WebSocket is ignored at the node listener, and headers are judged there too', async (t) => {
  const { plane } = loopback()
  const { url, roots } = await plane.target()
  const ask = async (path: string, ...headers: string[]): Promise<string> => {
    const socket = tls.connect({ host: '127.0.0.1', port: plane.nodePort, ca: [...roots], servername: 'localhost' })
    cleanup(t, () => void socket.destroy())
    let received = ''
    socket.on('error', () => {}).on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`,
    )
    const [, status = ''] = await eventually('an answer', () => /^HTTP\/1\.1 (\d+)[^]*\}/.exec(received))
    return `${status} ${/"code":"(\w+)"/.exec(received)?.[1] ?? ''}`.trim()
  }
  const webSocket = ['Connection: Upgrade', 'Upgrade: websocket']
  assert.equal(await ask('/v1/bundle', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c'), '200')
  assert.equal(await ask('/v1/nodes/gpu-001/channel', ...webSocket), '401 CLIENT_CERT_REQUIRED')
  assert.equal(await ask('/v1/nodes/gpu-001/channel', ...webSocket, 'Host: other'), '400 REQUEST_INVALID')
})

test('A1: the description of the API is not sent again to a caller that has it', async () => {
  const { plane } = loopback()
  const get = async (headers: http.OutgoingHttpHeaders) => {
    // From an address that no attack before came from: those are slowed down for a while.
    const options = { headers, agent: false, localAddress: '127.0.0.79' }
    const request = http.get(`${plane.operatorUrl}/openapi.json`, options)
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    return { status: answer.statusCode, etag: answer.headers.etag ?? '', body: await text(answer) }
  }
  const first = await get({})
  assert.match(first.etag, /^"[0-9a-f]{32}"$/)
  assert.equal((JSON.parse(first.body) as { openapi: string }).openapi, '3.1.0')
  const again = await get({ 'if-none-match': `"other", W/${first.etag}` })
  assert.deepEqual([again.status, again.body], [304, ''])
  assert.equal((await get({ 'if-none-match': '"other"' })).status, 200)
})
