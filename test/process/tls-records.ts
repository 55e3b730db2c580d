// Watches what a TLS 1.3 client sends until its handshake is behind it. The plane issues no tickets, so whatever it sends
// after the client's first protected record is an answer and not part of the handshake.

const headerBytes = 5
const applicationData = 23

export type RecordWatch = { bytes(chunk: Buffer): void; seen(): boolean }

export const applicationDataWatch = (): RecordWatch => {
  let seen = false
  let header = Buffer.alloc(0)
  let toSkip = 0
  return {
    seen: () => seen,
    bytes(chunk) {
      let rest = chunk
      while (!seen && rest.length > 0) {
        const skipped = Math.min(toSkip, rest.length)
        toSkip -= skipped
        rest = rest.subarray(skipped)
        const missing = Math.min(headerBytes - header.length, rest.length)
        if (toSkip > 0 || missing === 0) continue
        header = Buffer.concat([header, rest.subarray(0, missing)])
        rest = rest.subarray(missing)
        if (header.length < headerBytes) continue
        seen = header[0] === applicationData
        toSkip = header.readUInt16BE(3)
        header = Buffer.alloc(0)
      }
    },
  }
}
