// Watches both directions of a TLS 1.3 connection for the first bytes of a reply. Records are encrypted, so their order
// and size have to tell: behind the client's first protected record the handshake is over, and what is then larger than
// a session ticket is an answer. The plane resumes nothing, but OpenSSL still sends two tickets that lead nowhere, and
// Node has no option against it.

export type ReplyWatch = {
  /** From the client to the plane. */
  sent(chunk: Buffer): void
  /** From the plane to the client: the bytes of the reply that begins in it, or 0. */
  received(chunk: Buffer): number
}

const headerBytes = 5
const applicationData = 23
/** The record of a ticket that only names a session: 57 bytes, their type, and the tag of the cipher. */
const ticketBytes = 74

export const replyWatch = (): ReplyWatch => {
  let handshakeOver = false
  let replyBytes = 0
  const fromClient = recordReader((type) => (handshakeOver ||= type === applicationData))
  const fromPlane = recordReader((type, length) => {
    if (handshakeOver && type === applicationData && length > ticketBytes) replyBytes = Math.max(replyBytes, length)
  })
  return {
    sent: fromClient,
    received(chunk) {
      replyBytes = 0
      fromPlane(chunk)
      return replyBytes
    },
  }
}

/** Calls back for every record whose header is complete, however the stream is cut into chunks. */
const recordReader = (onRecord: (type: number, length: number) => void): ((chunk: Buffer) => void) => {
  let header = Buffer.alloc(0)
  let toSkip = 0
  return (chunk) => {
    for (let rest = chunk; rest.length > 0;) {
      const skipped = Math.min(toSkip, rest.length)
      toSkip -= skipped
      rest = rest.subarray(skipped)
      const missing = Math.min(headerBytes - header.length, rest.length)
      if (toSkip > 0 || missing === 0) continue
      header = Buffer.concat([header, rest.subarray(0, missing)])
      rest = rest.subarray(missing)
      if (header.length < headerBytes) continue
      toSkip = header.readUInt16BE(3)
      onRecord(header[0] ?? 0, toSkip)
      header = Buffer.alloc(0)
    }
  }
}
