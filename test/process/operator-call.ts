// One call of the operator API over the plane's Unix socket.

import * as http from 'node:http'

// A test knows which answer it expects; spelling its type out again would test nothing.
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any

export type Reply = { readonly status: number; readonly headers: http.IncomingHttpHeaders; readonly body: Json }

/** `key` null: a caller without one. */
export const operatorCall = (
  socketPath: string,
  key: string | null,
  method: string,
  path: string,
  body?: object,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? null : JSON.stringify(body)
    const request = http.request({
      socketPath,
      method,
      path,
      timeout: 60_000,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(text === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    })
    request.on('timeout', () => request.destroy(new Error(`${method} ${path}: no answer`)))
    request.on('error', reject)
    request.on('response', (response) => resolve(readReply(response)))
    request.end(text ?? undefined)
  })

export const readReply = async (response: http.IncomingMessage): Promise<Reply> => {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  const isJson = /json/.test(response.headers['content-type'] ?? '')
  return { status: response.statusCode ?? 0, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}
