// A channel of a node that does only what the test tells it to: it can ignore pings and closes, and go on talking.

import * as tls from 'node:tls'
import { randomBytes } from 'node:crypto'
import { evidenceHeader, formatEvidence, type AgentEvidence } from '#wire/core/agent-evidence.ts'
import { channelProtocol } from '#wire/channel/channel.ts'
import { eventually, type Patience } from './eventually.ts'
import { sharedTlsOptions, type Identity, type NodeTarget } from './node-call.ts'
import type { Json } from './operator-call.ts'
import { decodeFrames, encodeFrame, opcodes } from './web-socket-frames.ts'

export type ChannelBehaviour = {
  /** Left out: answered, as any node does. */
  readonly pings?: 'answered' | 'ignored'
  /** `ignored`: neither the closing handshake nor the end of the stream makes this side stop. */
  readonly closes?: 'answered' | 'ignored'
  /** Left out: the ordinary first frame. Null: none. */
  readonly hello?: object | null
  /** What is offered as subprotocol; left out: ours. Null: none. */
  readonly protocol?: string | null
  /** Which process and machine opens it; a text is sent as it is. Left out: the agent does not say. */
  readonly evidence?: AgentEvidence | string | null
}

export type RawChannel = {
  /** Every JSON frame received, oldest first. */
  readonly frames: readonly Json[]
  pingsReceived(): number
  pongsReceived(): number
  /** The code and reason of the plane's close frame; null before one came. */
  closeFrame(): { code: number; reason: string } | null
  /** The plane ended the connection, one way or another. */
  ended(): boolean
  /** A frame with the next sequence number. False when the socket is gone. */
  send(type: string, body: object): boolean
  sendText(text: string): boolean
  sendBinary(bytes: Buffer): boolean
  sendPing(payload?: string): boolean
  /** From now on nothing is read: what the plane sends stays in the buffers between. */
  stopReading(): void
  /** Bytes sent that are still in this process. */
  unsentBytes(): number
  /** The first frame of a type, waiting for it. */
  frame(type: string, patience?: Patience): Promise<Json>
  /** Ends this side without a word. */
  destroy(): void
}

/** What the plane answered instead of opening a channel. */
export type NotOpened = { readonly status: number; readonly body: Json }

const openWithinMs = 15_000

export const openRawChannel = async (
  target: NodeTarget,
  identity: Identity | null,
  nodeId: string,
  behaviour: ChannelBehaviour = {},
): Promise<RawChannel | NotOpened> => {
  const ignoresCloses = behaviour.closes === 'ignored'
  // Documented by Node and missing in its types.
  const halfOpen = { allowHalfOpen: ignoresCloses }
  const socket = tls.connect({ ...sharedTlsOptions(target, identity), ...halfOpen })
  const state = { received: Buffer.alloc(0), ended: false, pings: 0, pongs: 0, sequence: 0, handled: 0 }
  const frames: Json[] = []
  let close: { code: number; reason: string } | null = null
  let trouble: Error | null = null
  const write = (opcode: number, payload: Buffer): boolean =>
    socket.writable && (socket.write(encodeFrame(opcode, payload)), true)

  const upgraded = { head: null as string | null }
  socket.on('error', (error) => (trouble = error))
  for (const event of ['end', 'close'] as const) socket.on(event, () => (state.ended = true))
  socket.on('data', (chunk: Buffer) => {
    state.received = Buffer.concat([state.received, chunk])
    if (upgraded.head === null) {
      const end = state.received.indexOf('\r\n\r\n')
      if (end === -1) return
      upgraded.head = state.received.subarray(0, end).toString('latin1')
      state.received = state.received.subarray(end + 4)
    }
    if (statusOf(upgraded.head) !== 101) return
    const decoded = decodeFrames(state.received)
    state.received = Buffer.from(decoded.rest)
    for (const frame of decoded.frames) handle(frame.opcode, frame.payload)
  })
  const handle = (opcode: number, payload: Buffer): void => {
    if (opcode === opcodes.text) {
      const frame: Json = JSON.parse(payload.toString('utf8'))
      frames.push(frame)
      state.handled = Math.max(state.handled, Number(frame.seq ?? 0))
    } else if (opcode === opcodes.ping) {
      state.pings++
      if (behaviour.pings !== 'ignored') write(opcodes.pong, payload)
    } else if (opcode === opcodes.pong) {
      state.pongs++
    } else if (opcode === opcodes.close) {
      close = {
        code: payload.length >= 2 ? payload.readUInt16BE(0) : 1005,
        reason: payload.subarray(2).toString('utf8'),
      }
      if (!ignoresCloses) {
        write(opcodes.close, payload)
        socket.end()
      }
    }
  }
  socket.write(upgradeRequest(target, nodeId, behaviour))

  const head = await eventually(
    `an answer to the upgrade of ${nodeId}`,
    () => {
      if (upgraded.head !== null) return upgraded.head
      return state.ended || trouble !== null ? 'gone' : null
    },
    { withinMs: openWithinMs, everyMs: 5 },
  )
  if (head === 'gone') throw new Error(`the channel of ${nodeId} was not opened`, { cause: trouble })
  if (statusOf(head) !== 101) {
    const text = await eventually('the body of the refusal', () =>
      bodyComplete(head, state.received) || state.ended ? { of: state.received } : null,
    )
    socket.destroy()
    return { status: statusOf(head), body: parsed(text.of.toString('utf8')) }
  }

  const send = (type: string, body: object): boolean =>
    write(
      opcodes.text,
      Buffer.from(JSON.stringify({ stream: 0, seq: ++state.sequence, ack: state.handled, type, body })),
    )
  const hello = behaviour.hello === undefined ? ordinaryHello : behaviour.hello
  if (hello !== null) send('hello', hello)
  return {
    frames,
    pingsReceived: () => state.pings,
    pongsReceived: () => state.pongs,
    closeFrame: () => close,
    ended: () => state.ended || socket.destroyed,
    send,
    sendText: (text) => write(opcodes.text, Buffer.from(text)),
    sendBinary: (bytes) => write(opcodes.binary, bytes),
    sendPing: (payload = '') => write(opcodes.ping, Buffer.from(payload)),
    stopReading: () => void socket.pause(),
    unsentBytes: () => socket.writableLength,
    frame: (type, patience) =>
      eventually(`a frame ${type}`, () => frames.find((frame) => frame.type === type), patience),
    destroy: () => void socket.destroy(),
  }
}

const ordinaryHello = { agent_version: 'raw', capabilities: [], config_revision: 0, trust_revision: 0 }

const upgradeRequest = (
  target: NodeTarget,
  nodeId: string,
  { protocol = channelProtocol, evidence = null }: ChannelBehaviour,
): string =>
  [
    `GET /v1/nodes/${nodeId}/channel HTTP/1.1`,
    `Host: ${new URL(target.url).host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    ...(protocol === null ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    ...(evidence === null
      ? []
      : [`${evidenceHeader}: ${typeof evidence === 'string' ? evidence : formatEvidence(evidence)}`]),
    '\r\n',
  ].join('\r\n')

const statusOf = (head: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0)

const bodyComplete = (head: string, body: Buffer): boolean => {
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  return length !== undefined && body.length >= Number(length)
}

const parsed = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
