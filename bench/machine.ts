// A machine without an agent, as benchmarks need thousands of them: bare sockets and hand-written HTTP, so that the cost of
// making the load leaves the plane a core.

import { randomBytes } from 'node:crypto'
import * as tls from 'node:tls'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'

/** Where a plane takes nodes. */
export type Door = {
  readonly host: string
  readonly port: number
  readonly rootPem: string
  readonly trust: tls.SecureContext
}

export type Machine = {
  readonly secret: string
  readonly key: PrivateKey
  readonly csr: string
  id: string
  /** In the WireGuard network. */
  address: string | null
  context: tls.SecureContext | null
  socket: tls.TLSSocket | null
}

export const doorAt = (nodeUrl: string, rootPem: string): Door => {
  const { hostname, port } = new URL(nodeUrl)
  const trust = tls.createSecureContext({ ca: [rootPem], minVersion: 'TLSv1.3' })
  return { host: hostname, port: Number(port), rootPem, trust }
}

export const newMachine = (name: string, secret: string): Machine => {
  const key = generateKey('p256')
  return { secret, key, csr: makeCsr(key, name), id: '', address: null, context: null, socket: null }
}

/** A connection that only proves who the plane is. */
export const shakeHands = async (door: Door): Promise<void> => closed(await connect(door, door.trust))

type EnrollAnswer = {
  node_id: string
  certificate_chain: string
  overlay_config: { host_overlay_ipv6: string } | null
}

/** `more`: what else it says of itself. */
export const enroll = async (door: Door, machine: Machine, more: object = {}): Promise<void> => {
  const socket = await connect(door, door.trust)
  const body = { method: 'token', enrollment_token: machine.secret, csr: machine.csr, ...more }
  const reply = await exchange(socket, post(door, '/v1/enroll', body))
  await closed(socket)
  if (reply.status !== 200) throw new Error(`enroll: ${reply.status} ${reply.body}`)
  const answer = JSON.parse(reply.body) as EnrollAnswer
  machine.id = answer.node_id
  machine.address = answer.overlay_config === null ? null : answer.overlay_config.host_overlay_ipv6
  machine.context = tls.createSecureContext({
    ca: [door.rootPem],
    cert: answer.certificate_chain,
    key: machine.key.pkcs8Pem(),
    minVersion: 'TLSv1.3',
  })
}

/** The connection stays: the channel opens on it. */
export const confirm = async (door: Door, machine: Machine): Promise<void> => {
  if (machine.context === null) throw new Error('confirm: was not enrolled')
  const socket = await connect(door, machine.context)
  machine.socket = socket
  socket.on('error', () => socket.destroy())
  const reply = await exchange(socket, post(door, `/v1/nodes/${machine.id}/confirm`, {}))
  if (reply.status !== 200) throw new Error(`confirm: ${reply.status} ${reply.body}`)
}

export const openChannel = async (door: Door, machine: Machine): Promise<void> => {
  if (machine.socket === null) throw new Error('channel: was not confirmed')
  const request = [
    `GET /v1/nodes/${machine.id}/channel HTTP/1.1`,
    `host: ${door.host}:${door.port}`,
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
    'sec-websocket-protocol: muster.v1',
  ].join('\r\n')
  const reply = await exchange(machine.socket, `${request}\r\n\r\n`)
  if (reply.status !== 101) throw new Error(`channel: ${reply.status} ${reply.body}`)
  machine.socket.write(textFrame(hello))
  answerPings(machine.socket)
}

const connect = ({ host, port }: Door, secureContext: tls.SecureContext): Promise<tls.TLSSocket> =>
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

const post = ({ host, port }: Door, route: string, body: object): string => {
  const text = JSON.stringify(body)
  return `POST ${route} HTTP/1.1\r\nhost: ${host}:${port}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

const hello = JSON.stringify({
  stream: 0,
  seq: 1,
  ack: 0,
  type: 'hello',
  body: { agent_version: 'bench', capabilities: [], config_revision: 0, trust_revision: 0 },
})

/** Client frames are masked; a mask of zeros leaves the bytes as they are. */
export const textFrame = (text: string): Buffer => {
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
