// The beginning and the end of what a program writes, however much that is, as text that can be stored and shown.

export type KeptText = { readonly head: string; readonly tail: string; readonly bytes: number }

export type OutputWindow = {
  add(chunk: Uint8Array): void
  text(): KeptText
}

/** Of each of the two at most `most` bytes. */
export const openOutputWindow = (most: number): OutputWindow => {
  const head = Buffer.alloc(most)
  let tail: Uint8Array = Buffer.alloc(0)
  let bytes = 0
  return {
    add: (chunk) => {
      const toHead = Math.max(0, Math.min(chunk.length, most - bytes))
      head.set(chunk.subarray(0, toHead), Math.min(bytes, most))
      const rest = chunk.subarray(toHead)
      if (rest.length >= most) tail = Buffer.from(rest.subarray(rest.length - most))
      else if (rest.length > 0) tail = Buffer.concat([tail, rest]).subarray(-most)
      bytes += chunk.length
    },
    text: () => ({ head: shown(head.subarray(0, Math.min(bytes, most))), tail: shown(tail), bytes }),
  }
}

/** Never longer than the bytes were. What a terminal would obey, and what is no text, becomes a mark. */
const shown = (bytes: Uint8Array): string =>
  Buffer.from(bytes)
    .toString('utf8')
    // oxlint-disable-next-line no-control-regex -- line ends and tabs are text
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd')
