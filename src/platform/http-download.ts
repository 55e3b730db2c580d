// The answer to one HTTP/1.1 request, written to a file piece by piece as it comes: it may be larger than the memory. A file that was begun
// before is gone on with, where the server can do that.

import * as fs from 'node:fs'
import * as http from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Timers } from './timers.ts'

export type DownloadRequest = {
  readonly path: string
  /** For the Host header. */
  readonly authority: string
  readonly headers: Readonly<Record<string, string>>
  /** Names the bytes: what was begun of others is not gone on with. */
  readonly etag: string
  /** In bytes, beside those of it that are there already: a file that takes more is not begun. */
  readonly most: number
  /** How long nothing may come. */
  readonly silentMs: number
}

export type DownloadAnswer =
  | { readonly kind: 'downloaded' }
  | { readonly kind: 'too-large'; readonly bytes: number }
  | { readonly kind: 'refused'; readonly status: number; readonly retryAfter: string | null; readonly body: string }

const longestRefusal = 64 * 1024

/** The connection is closed afterwards, whatever happened. Rejects with an error that has a `code`; what has come by then stays in the file. */
export const downloadOn = async (
  timers: Timers,
  connection: Duplex,
  request: DownloadRequest,
  file: string,
  signal: AbortSignal,
): Promise<DownloadAnswer> => {
  const begun = fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0
  const range = begun === 0 ? {} : { range: `bytes=${begun}-`, 'if-range': request.etag }
  const quiet = new AbortController()
  const ended = AbortSignal.any([signal, quiet.signal])
  let cancel = timers.after(request.silentMs, () => quiet.abort())
  let isOver = false
  const waitAgain = (): void => {
    // What has come by then is handed out after the end, too.
    if (isOver) return
    cancel()
    cancel = timers.after(request.silentMs, () => quiet.abort())
  }
  try {
    const response = await answerOf(connection, { ...request, headers: { ...request.headers, ...range } }, ended)
    response.on('data', waitAgain)
    const status = response.statusCode ?? 0
    if (status === 416 && begun > 0) return beyondItsEnd(response, begun, file)
    if (status !== 200 && status !== 206) {
      const body = await textOf(response)
      return { kind: 'refused', status, retryAfter: response.headers['retry-after'] ?? null, body }
    }
    const from = status === 206 ? begun : 0
    const bytes = from + Number(response.headers['content-length'] ?? 0)
    if (bytes - begun > request.most) return { kind: 'too-large', bytes }
    const fd = fs.openSync(file, openFlags, 0o600)
    await pipeline(response, fs.createWriteStream('', { fd, start: from }), { signal: ended })
    fs.truncateSync(file, bytes)
    return { kind: 'downloaded' }
  } catch (error) {
    if (signal.aborted) throw Object.assign(new Error('stopped'), { code: 'ABORT_ERR' })
    if (quiet.signal.aborted) throw Object.assign(new Error('nothing came for too long'), { code: 'ETIMEDOUT' })
    throw error
  } finally {
    isOver = true
    cancel()
    connection.destroy()
  }
}

/** All of it is there. More than all of it are other bytes: they are given up, and the next attempt begins anew. */
const beyondItsEnd = (response: http.IncomingMessage, begun: number, file: string): DownloadAnswer => {
  const [, length] = /^bytes \*\/(\d+)$/.exec(response.headers['content-range'] ?? '') ?? []
  if (Number(length) === begun) return { kind: 'downloaded' }
  fs.rmSync(file, { force: true })
  throw Object.assign(new Error('the file that was begun is longer than the one of the server'), { code: 'ECONNRESET' })
}

/** Not through a link that another process of this user may have put there. */
const openFlags = fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW

const answerOf = (
  connection: Duplex,
  { path, authority, headers }: DownloadRequest,
  signal: AbortSignal,
): Promise<http.IncomingMessage> =>
  new Promise((resolve, reject) => {
    const call = http.request({
      createConnection: () => connection,
      method: 'GET',
      path,
      headers: { ...headers, host: authority, connection: 'close' },
      signal,
    })
    call.on('error', reject)
    call.on('response', resolve)
    call.on('close', () => reject(Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' })))
    call.end()
  })

const textOf = async (response: http.IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of response) {
    text += String(chunk)
    if (text.length > longestRefusal) break
  }
  return text
}
