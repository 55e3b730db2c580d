// Calls of the operator API. An answer is checked against its schema before a command sees it; a refusal becomes a
// Failure, or a value for commands that expect it.

import type { Static, TSchema } from 'typebox'
import { Check } from 'typebox/value'
import { pathExists } from '#platform/paths.ts'
import type { HttpReply } from '#platform/http-client.ts'
import { ErrorBody } from '#wire/api/node-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { resolveConnection, targetOf } from './connection.ts'
import { readCa, readKey } from './credentials.ts'
import { exitCodeOf, exitCodes } from './exit-codes.ts'
import { Failure, fillIn, type About } from './failure.ts'
import { unreachable } from './unreachable.ts'

export type Ask<T extends TSchema> = {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: object
  readonly answer: T
  readonly about?: About
  /** How long the plane may take to answer; 30 s unless given. */
  readonly timeoutMs?: number
}

export type OperatorClient = {
  ask<T extends TSchema>(ask: Ask<T>): Promise<Static<T>>
  /** Like `ask`, with a refusal as a value. Trouble on the way is thrown all the same. */
  tryAsk<T extends TSchema>(ask: Ask<T>): Promise<Static<T> | Failure>
}

const usualTimeoutMs = 30_000

export const connect = (cli: Cli, options: GlobalOptions): OperatorClient => {
  const connection = resolveConnection(options, cli.env)
  const key = readKey(connection)
  const http = cli.openHttp(targetOf(connection, readCa(connection)))
  const send = async (ask: Ask<TSchema>): Promise<HttpReply> => {
    try {
      return await http.send({
        method: ask.method,
        path: ask.path + queryText(ask.query ?? {}),
        headers: { authorization: `Bearer ${key}`, accept: 'application/json', 'content-type': 'application/json' },
        body: ask.method === 'GET' ? null : JSON.stringify(ask.body ?? {}),
        timeoutMs: ask.timeoutMs ?? usualTimeoutMs,
      })
    } catch (error) {
      const { where } = connection
      throw unreachable(connection, error, where.kind === 'socket' && pathExists(where.dataFolder))
    }
  }
  const tryAsk = async <T extends TSchema>(ask: Ask<T>) => readReply(await send(ask), ask)
  return {
    tryAsk,
    async ask(ask) {
      const answer = await tryAsk(ask)
      if (answer instanceof Failure) throw answer
      return answer
    },
  }
}

const readReply = <T extends TSchema>(reply: HttpReply, ask: Ask<T>): Static<T> | Failure => {
  const body = parseJson(reply.body)
  if (reply.status >= 200 && reply.status < 300) {
    if (Check(ask.answer, body)) return body
    throw foreign(`${ask.method} ${ask.path} answered something else than this version of muster expects`)
  }
  if (!Check(ErrorBody, body)) throw foreign(`${ask.method} ${ask.path} answered HTTP ${reply.status}`)
  return new Failure({
    exit: exitCodeOf(body.code, reply.status),
    code: body.code,
    sentence: body.message,
    detail: detailOf(body),
    next: fillIn(body.next, ask.about ?? {}),
    retryAfterMs: body.retry_after_ms,
    field: body.field ?? null,
  })
}

/** With who does not know of an order that is in force at one replica only. */
const detailOf = ({
  detail,
  in_force_here: here,
  replicas_unaware: unaware,
  kept_in: kept,
}: ErrorBody): string | null => {
  if (here !== true) return detail
  const others =
    unaware === undefined || unaware.length === 0 ? 'no other replica is known' : `not known to ${unaware.join(', ')}`
  const lost = kept === 'memory' ? '; the order is kept in memory only and ends with the process of that plane' : ''
  return `${detail === null ? '' : `${detail}; `}${others}${lost}`
}

const foreign = (detail: string): Failure =>
  new Failure({
    exit: exitCodes.fault,
    code: 'UNEXPECTED_ANSWER',
    sentence: 'This does not answer like a plane of this version.',
    detail,
    next: 'Compare the versions: muster version, here and on the plane',
  })

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const queryText = (query: Readonly<Record<string, string | number | boolean | undefined>>): string => {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
}
