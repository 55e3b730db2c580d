// Calls of the operator API. An answer is checked against its schema before a command sees it; a refusal becomes a
// Failure, or a value for commands that expect it.

import type { TSchema } from 'typebox'
import { pathExists } from '#platform/paths.ts'
import type { HttpReply } from '#platform/http-client.ts'
import {
  pathOf,
  type AnswerOf,
  type BodyOf,
  type Endpoint,
  type Immutable,
  type ParamsOf,
  type QueryOf,
} from '#wire/core/endpoint.ts'
import { ErrorBody } from '#wire/core/error-body.ts'
import { openAnswer } from '#wire/core/open-answer.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { resolveConnection, targetOf, type Connection } from './connection.ts'
import { readCa, readKey } from './credentials.ts'
import { exitCodeOf, exitCodes } from './exit-codes.ts'
import { Failure, fillIn, usageFailure, type About } from './failure.ts'
import { printable } from './printable.ts'
import { unreachable } from './unreachable.ts'
import { sleep } from '#platform/timers.ts'
import { matchesSchema } from '#platform/json-schema.ts'

/** What a call is given besides its declaration; `params`, `query` and `body` are what the declaration says. */
export type Given<E extends Endpoint> = {
  /** Undefined: not asked for. */
  readonly query?: { readonly [K in keyof QueryOf<E>]?: QueryOf<E>[K] | undefined }
  readonly about?: About
  /** How long the plane may take to answer; 30 s unless given. */
  readonly timeoutMs?: number
} & (E extends { readonly params: TSchema } ? { readonly params: ParamsOf<E> } : { readonly params?: never }) &
  (Record<never, never> extends BodyOf<E>
    ? { readonly body?: Immutable<BodyOf<E>> }
    : { readonly body: Immutable<BodyOf<E>> })

/** Left out where nothing has to be given. */
type Args<E extends Endpoint> = Record<never, never> extends Given<E> ? [given?: Given<E>] : [given: Given<E>]

export type OperatorClient = {
  ask<E extends Endpoint>(endpoint: E, ...given: Args<E>): Promise<AnswerOf<E>>
  /** Like `ask`, with a refusal as a value. Trouble on the way is thrown all the same. */
  tryAsk<E extends Endpoint>(endpoint: E, ...given: Args<E>): Promise<AnswerOf<E> | Failure>
  /** For a call whose answer is no JSON. */
  askText(endpoint: Endpoint): Promise<string>
  /** Ends the calls that are under way, too. */
  close(): void
}

/** A call as it is sent. */
type Sent = {
  readonly endpoint: Endpoint
  /** With its parameters filled in. */
  readonly path: string
  readonly given: AnyGiven
  readonly by: Connection['where']['kind']
}

type AnyGiven = {
  readonly params?: object
  readonly query?: object
  readonly body?: object
  readonly about?: About
  readonly timeoutMs?: number
}

const usualTimeoutMs = 30_000

export const connect = (cli: Cli, options: GlobalOptions): OperatorClient => {
  const connection = resolveConnection(options, cli.env)
  const key = readKey(connection)
  const http = cli.openHttp(targetOf(connection, readCa(connection)))
  const send = async ({ endpoint, path, given }: Sent): Promise<HttpReply> => {
    try {
      return await http.send({
        method: endpoint.method,
        path: path + queryText(given.query ?? {}),
        headers: { authorization: `Bearer ${key}`, accept: 'application/json', 'content-type': 'application/json' },
        body: endpoint.method === 'GET' ? null : JSON.stringify(given.body ?? {}),
        timeoutMs: given.timeoutMs ?? usualTimeoutMs,
      })
    } catch (error) {
      const { where } = connection
      throw unreachable(connection, error, where.kind === 'socket' && pathExists(where.dataFolder))
    }
  }
  const tryAsk = async <E extends Endpoint>(endpoint: E, ...[given = {}]: [AnyGiven?]) => {
    const wrong = wrongWord(endpoint, given)
    if (wrong !== null) return wrong
    const sent = { endpoint, path: pathOf(endpoint, given.params), given, by: connection.where.kind }
    return readReply<E>(await send(sent), sent)
  }
  return {
    tryAsk,
    async ask(endpoint, ...given) {
      const answer = await tryAsk(endpoint, ...given)
      if (answer instanceof Failure) throw answer
      return answer
    },
    async askText(endpoint) {
      const sent = { endpoint, path: pathOf(endpoint), given: {}, by: connection.where.kind }
      const reply = await send(sent)
      if (isSuccess(reply)) return reply.body
      const refused = readReply(reply, sent)
      throw refused instanceof Failure
        ? refused
        : foreign(`${endpoint.method} ${endpoint.path} answered HTTP ${reply.status}`)
    },
    close: () => http.close(),
  }
}

/** What a person types to name a thing. Nothing else is repeated in an error: a body may hold a secret. */
const words: Readonly<Record<string, string>> = {
  id: 'an id',
  name: 'a name',
  node: 'a name for a node',
  tag: 'a tag',
  task: 'the id of a task',
  rollout: 'the id of a rollout',
  issuer: 'the name of a worker issuer',
}

/** For a word that can name nothing: the plane would say that the request does not fit a pattern. Null: there is none. */
const wrongWord = ({ params, query, body }: Endpoint, given: AnyGiven): Failure | null => {
  const parts = [
    [params, given.params],
    [query, given.query],
    [body, given.body],
  ] as const
  for (const [schema, values] of parts) {
    for (const [key, value] of Object.entries(values ?? {})) {
      const { pattern, description } = propertyOf(schema, key)
      const what = words[key]
      if (what === undefined || pattern === undefined || typeof value !== 'string') continue
      const rule = description === undefined ? '' : `: ${description.charAt(0).toLowerCase()}${description.slice(1)}`
      if (!new RegExp(pattern).test(value)) return usageFailure(`${printable(value)} is not ${what}${rule}.`)
    }
  }
  return null
}

type Property = { readonly pattern?: string; readonly description?: string }

const propertyOf = (schema: TSchema | undefined, key: string): Property => {
  const { properties = {} } = (schema ?? {}) as { readonly properties?: Readonly<Record<string, Property>> }
  return (Object.hasOwn(properties, key) ? properties[key] : undefined) ?? {}
}

const isSuccess = ({ status }: HttpReply): boolean => status >= 200 && status < 300

/** The pages of a list, one after another. A cursor that does not move ends them: more is not there yet. */
export async function* eachPage<P extends { readonly next: string | null }>(
  ask: (after: string | undefined) => Promise<P>,
): AsyncGenerator<P, void, void> {
  for (let after: string | undefined; ;) {
    const page: P = await ask(after)
    yield page
    if (page.next === null || page.next === after) return
    after = page.next
  }
}

/** What all pages of a list have. */
export const everyPage = async <P extends { readonly next: string | null }, T>(
  ask: (after: string | undefined) => Promise<P>,
  itemsOf: (page: P) => readonly T[],
): Promise<T[]> => {
  const items: T[] = []
  for await (const page of eachPage(ask)) items.push(...itemsOf(page))
  return items
}

const readReply = <E extends Endpoint>(
  reply: HttpReply,
  { endpoint, path, given, by }: Sent,
): AnswerOf<E> | Failure => {
  const body = parseJson(reply.body)
  const call = `${endpoint.method} ${path}`
  if (isSuccess(reply)) {
    if (endpoint.answer === undefined || matchesSchema(openAnswer(endpoint.answer), body)) return body as AnswerOf<E>
    throw foreign(`${call} answered something else than this version of muster expects`)
  }
  if (!matchesSchema(ErrorBody, body)) throw foreign(`${call} answered HTTP ${reply.status}`)
  if (body.code === 'NOT_FOUND') throw noSuchCall(call, by)
  return new Failure({
    exit: exitCodeOf(body.code, reply.status),
    code: body.code,
    sentence: body.message,
    detail: detailOf(body),
    next: fillIn(body.next, given.about ?? {}),
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

/** A plane of this version has every call of this version; a socket is never one of its listeners for machines. */
const noSuchCall = (call: string, by: Sent['by']): Failure =>
  new Failure({
    exit: exitCodes.fault,
    code: 'NOT_FOUND',
    sentence: `The plane has no such call: it may be of an older version${by === 'url' ? ', or this is where machines reach it' : ''}.`,
    detail: call,
    next: `${by === 'url' ? 'Give the address for operators (--operator-listen, port 8440 unless it says otherwise); then c' : 'C'}ompare the versions: muster version, here and on the plane`,
  })

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

const queryText = (query: object): string => {
  const pairs = Object.entries<string | number | boolean | undefined>({ ...query }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
}

const retryMs = 2000

/** For commands that follow something: a plane that restarts is waited for, one that refuses ends it. */
export const waitForPlane = async <T>(cli: Cli, note: (text: string) => void, ask: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      const waits =
        error instanceof Failure && (error.exit === exitCodes.unavailable || error.exit === exitCodes.tryLater)
      if (!waits) throw error
      if (attempt === 1) note(`${error.message} Waiting for it.`)
      await sleep(cli.timers, error.retryAfterMs ?? retryMs)
    }
  }
}
