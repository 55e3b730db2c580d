// Just enough of RFC 6455 to speak it badly on purpose: no frame is answered unless the test does it.

import { randomBytes } from 'node:crypto'

export const opcodes = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export type WebSocketFrame = { readonly opcode: number; readonly payload: Buffer }

/** As a client has to send it: final and masked. */
export const encodeFrame = (opcode: number, payload: Buffer): Buffer => {
  const mask = randomBytes(4)
  const masked = Buffer.from(payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0)))
  return Buffer.concat([Buffer.from([0x80 | opcode]), encodeLength(payload.length), mask, masked])
}

const encodeLength = (length: number): Buffer => {
  if (length < 126) return Buffer.from([0x80 | length])
  if (length > 0xffff) {
    const long = Buffer.alloc(9)
    long[0] = 0x80 | 127
    long.writeBigUInt64BE(BigInt(length), 1)
    return long
  }
  return Buffer.from([0x80 | 126, length >> 8, length & 0xff])
}

/** Takes whole frames off the front of what a server sent; the plane neither masks nor splits. */
export const decodeFrames = (received: Buffer): { frames: WebSocketFrame[]; rest: Buffer } => {
  const frames: WebSocketFrame[] = []
  let rest = received
  for (;;) {
    const size = frameSize(rest)
    if (size === null || rest.length < size.header + size.payload) return { frames, rest }
    const end = size.header + size.payload
    frames.push({ opcode: (rest[0] ?? 0) & 0x0f, payload: Buffer.from(rest.subarray(size.header, end)) })
    rest = rest.subarray(end)
  }
}

const frameSize = (bytes: Buffer): { header: number; payload: number } | null => {
  const short = bytes[1]
  if (short === undefined) return null
  if (short < 126) return { header: 2, payload: short }
  if (short === 126) return bytes.length < 4 ? null : { header: 4, payload: bytes.readUInt16BE(2) }
  return bytes.length < 10 ? null : { header: 10, payload: Number(bytes.readBigUInt64BE(2)) }
}
