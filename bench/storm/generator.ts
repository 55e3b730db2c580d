// The machines of the storm. Bare sockets and hand-written HTTP, so that the generator's own cost leaves the plane a core.

import { randomBytes } from 'node:crypto'
import * as tls from 'node:tls'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'

export type Order =
  | { kind: 'prepare'; nodeUrl: string; rootPem: string; secrets: readonly string[] }
  | { kind: 'handshakes'; count: number }
  | { kind: 'enroll' | 'confirm' | 'channel'; from: number; upTo: number }

export type Report = { kind: 'report'; done: number; ms: number; failures: readonly string[] }

type StormNode = {
  secret: string
  key: PrivateKey
  csr: string
  id: string
  context: tls.SecureContext | null
  socket: tls.TLSSocket | null
}

const atOnce = 64
let host = ''
let port = 0
let trust: tls.SecureContext
let rootPem = ''
let nodes: StormNode[] = []

process.on('message', (order: Order) => {
  void obey(order).then((report) => process.send!(report))
})

const obey = async (order: Order): Promise<Report> => {
  const started = performance.now()
  const failures: string[] = []
  const each = async (from: number, to: number, run: (at: number) => Promise<void>): Promise<number> => {
    let next = from
    const worker = async (): Promise<void> => {
      while (next < to) {
        const at = next++
        await run(at).catch((error: unknown) => failures.push(String(error)))
      }
    }
    await Promise.all(Array.from({ length: atOnce }, worker))
    return to - from
  }
  const report = (done: number): Report => ({ kind: 'report', done, ms: performance.now() - started, failures })

  switch (order.kind) {
    case 'prepare': {
      const url = new URL(order.nodeUrl)
      host = url.hostname
      port = Number(url.port)
      rootPem = order.rootPem
      trust = tls.createSecureContext({ ca: [rootPem], minVersion: 'TLSv1.3' })
      nodes = order.secrets.map((secret, at) => {
        const key = generateKey('p256')
        return { secret, key, csr: makeCsr(key, `storm-${at}`), id: '', context: null, socket: null }
      })
      return report(nodes.length)
    }
    case 'handshakes':
      return report(
        await each(0, order.count, async () => {
          const socket = await connect(trust)
          await closed(socket)
        }),
      )
    case 'enroll':
      return report(await each(order.from, order.upTo, (at) => enroll(nodes[at]!)))
    case 'confirm':
      return report(await each(order.from, order.upTo, (at) => confirm(nodes[at]!)))
    case 'channel':
      return report(await each(order.from, order.upTo, (at) => openChannel(nodes[at]!)))
  }
}

const connect = (secureContext: tls.SecureContext): Promise<tls.TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = tls.connect({ host, port, servername: host, secureContext })
    socket.once('secureConnect', () => resolve(socket))
    socket.once('error', reject)
  })

const closed = (socket: tls.TLSSocket): Promise<void> =>
  new Promise((resolve) => {
    socket.once('close', () => resolve())
    socket.end()
  })

type Reply = { status: number; body: string }

/** Reads one answer; every answer here has a length or none at all. */
const exchange = (socket: tls.TLSSocket, request: string): Promise<Reply> =>
  new Promise((resolve, reject) => {
    let text = ''
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (text.length < head + 4 + length) return
      socket.off('data', onData)
      socket.off('close', onClose)
      resolve({ status: Number(text.slice(9, 12)), body: text.slice(head + 4, head + 4 + length) })
    }
    const onClose = (): void => reject(new Error('closed before an answer'))
    socket.on('data', onData)
    socket.once('close', onClose)
    socket.write(request)
  })

const post = (route: string, body: object): string => {
  const text = JSON.stringify(body)
  return `POST ${route} HTTP/1.1\r\nhost: ${host}:${port}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

const enroll = async (node: StormNode): Promise<void> => {
  const socket = await connect(trust)
  const reply = await exchange(
    socket,
    post('/v1/enroll', { method: 'token', enrollment_token: node.secret, csr: node.csr }),
  )
  await closed(socket)
  if (reply.status !== 200) throw new Error(`enroll: ${reply.status} ${reply.body}`)
  const answer = JSON.parse(reply.body) as { node_id: string; certificate_chain: string }
  node.id = answer.node_id
  node.context = tls.createSecureContext({
    ca: [rootPem],
    cert: answer.certificate_chain,
    key: node.key.pkcs8Pem(),
    minVersion: 'TLSv1.3',
  })
}

/** The connection stays: the channel opens on it. */
const confirm = async (node: StormNode): Promise<void> => {
  if (node.context === null) throw new Error('confirm: was not enrolled')
  const socket = await connect(node.context)
  node.socket = socket
  socket.on('error', () => socket.destroy())
  const reply = await exchange(socket, post(`/v1/nodes/${node.id}/confirm`, {}))
  if (reply.status !== 200) throw new Error(`confirm: ${reply.status} ${reply.body}`)
}

const openChannel = async (node: StormNode): Promise<void> => {
  if (node.socket === null) throw new Error('channel: was not confirmed')
  const key = randomBytes(16).toString('base64')
  const request = [
    `GET /v1/nodes/${node.id}/channel HTTP/1.1`,
    `host: ${host}:${port}`,
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${key}`,
    'sec-websocket-protocol: muster.v1',
  ].join('\r\n')
  const reply = await exchange(node.socket, `${request}\r\n\r\n`)
  if (reply.status !== 101) throw new Error(`channel: ${reply.status} ${reply.body}`)
  node.socket.write(textFrame(hello))
  answerPings(node.socket)
}

const hello = JSON.stringify({
  stream: 0,
  seq: 1,
  ack: 0,
  type: 'hello',
  body: { agent_version: 'storm', capabilities: [], config_revision: 0, trust_revision: 0 },
})

/** Client frames are masked; a mask of zeros leaves the bytes as they are. */
const textFrame = (text: string): Buffer => {
  const body = Buffer.from(text)
  const head = body.length < 126 ? [0x81, 0x80 | body.length] : [0x81, 0xfe, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), body])
}

/** Pings are the only short frames with an empty body the plane sends: two bytes, 0x89 0x00. */
const answerPings = (socket: tls.TLSSocket): void => {
  socket.on('data', (chunk: Buffer) => {
    if (chunk.includes(Buffer.from([0x89, 0x00]))) socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]))
  })
}
