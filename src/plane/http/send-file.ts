// Answers with a file: conditions and ranges first, which cost nothing, then its bytes at the pace of its sender and its reader.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { isRefusal, refuse } from '#domain/core/refusal.ts'
import { streamsAnswer } from '#platform/connections.ts'
import { askedBytes, type ByteRange } from './byte-range.ts'
import { hasAlready, notAllowedNow, sendRefusal, type ReplyOptions } from './http-reply.ts'
import type { FileAnswer } from './route.ts'

export const sendFile = async (
  options: ReplyOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  file: FileAnswer,
): Promise<FastifyReply> => {
  const no = notAllowedNow(options, request)
  if (no !== null) return sendRefusal(options, request, reply, no)
  const { etag, bytes } = file
  const { headers } = request
  if (hasAlready(headers['if-none-match'], etag)) return reply.code(304).headers(commonHeaders(request, file)).send()
  const asked =
    request.method === 'HEAD'
      ? ({ kind: 'whole' } as const)
      : askedBytes({ range: headers.range, ifRange: headers['if-range'] as string | undefined }, etag, bytes)
  if (asked.kind === 'unsatisfiable') {
    reply.header('content-range', `bytes */${bytes}`)
    return sendRefusal(options, request, reply, refuse('RANGE_NOT_SATISFIABLE'))
  }
  const range = asked.kind === 'part' ? asked : { from: 0, to: bytes - 1 }
  const head = {
    ...commonHeaders(request, file),
    'content-type': file.contentType,
    'content-length': String(range.to - range.from + 1),
    ...(asked.kind === 'part' && { 'content-range': `bytes ${range.from}-${range.to}/${bytes}` }),
  }
  const status = asked.kind === 'part' ? 206 : 200
  if (request.method === 'HEAD') {
    reply.hijack()
    reply.raw.writeHead(status, head).end()
    return reply
  }
  return sendRange(options, request, reply, { file, range, status, head })
}

type Prepared = {
  readonly file: FileAnswer
  readonly range: ByteRange
  readonly status: 200 | 206
  readonly head: Readonly<Record<string, string>>
}

const sendRange = async (
  options: ReplyOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  { file, range, status, head }: Prepared,
): Promise<FastifyReply> => {
  const sending = await file.begin()
  if (isRefusal(sending)) return sendRefusal(options, request, reply, sending)
  const { raw } = reply
  reply.hijack()
  streamsAnswer(request.raw.socket)
  raw.writeHead(status, head)
  if ((await sending.send(raw, range.from, range.to + 1)) === 'sent') raw.end()
  // Its length has been announced: that the end is missing is seen only by the connection that ends.
  else raw.destroy()
  return reply
}

const commonHeaders = (request: FastifyRequest, { etag }: FileAnswer) => ({
  etag,
  'accept-ranges': 'bytes',
  // Its digest is of these bytes: nothing on the way may compress or unpack them.
  'cache-control': 'no-cache, no-transform',
  'x-content-type-options': 'nosniff',
  'muster-correlation': request.id,
})
