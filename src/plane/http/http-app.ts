// How a list of routes becomes a server's request handler. The order matters: the caller is authenticated and authorised before a
// byte of the body is read and again once it is there, the schema is checked before the handler runs, and every refusal leaves
// through one function.

import { evidenceIn } from '#wire/core/agent-evidence.ts'
import { hasDuplicateKeys } from '#wire/core/strict-json.ts'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { actorOf, type Principal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { provenConnection } from '#platform/connections.ts'
import type { HttpRequest } from '#platform/http-server.ts'
import { authorise } from './authorise.ts'
import { askForBody, headerMistake } from './header-rules.ts'
import {
  endWithReply,
  fail,
  notNow,
  principalField,
  principalOf,
  sendAnswer,
  sendRefusal,
  type ReplyOptions,
  type RouteConfig,
} from './http-reply.ts'
import { sendFile } from './send-file.ts'
import { queryReader } from './query-values.ts'
import { duplicateKeys, secretName, secretRefusal, unfitRequest } from './request-text.ts'
import type { Route } from './route.ts'
import { sourceAddress } from '#platform/caller-address.ts'

export type HttpAppOptions = ReplyOptions & {
  readonly routes: readonly Route[]
  /** Asked for every route that is not open to anyone. */
  readonly authenticate: (request: HttpRequest, source: string, route: Route) => Promise<Principal | Refusal>
  /** Names one call in the journal, the log and the answer. */
  readonly correlation: () => string
}

/** The calls of a listener for machines, which says itself who calls. */
export type MachineCalls = Omit<HttpAppOptions, 'callers' | 'authenticate'>

export const bodyLimit = 64 * 1024

/** Not listening anywhere: give `app.routing` to a server, after `app.ready()`. */
export const httpApp = (options: HttpAppOptions): FastifyInstance => {
  const app = fastify({
    logger: false,
    bodyLimit,
    exposeHeadRoutes: false,
    genReqId: options.correlation,
    requestIdHeader: false,
    // While stopping, what still arrives on open connections is answered like the rest.
    return503OnClosing: false,
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        // To check that a schema is one means compiling that of schemas, with the first call of every listener. A test does it.
        validateSchema: false,
      },
      onCreate: (ajv) => void (ajv.compile = compiledOnFirstUse(ajv.compile.bind(ajv)) as typeof ajv.compile),
    },
    frameworkErrors: (error, request, reply) => void fail(options, request, reply, error),
  })
  app.decorateRequest(principalField, null)
  app.removeContentTypeParser('text/plain')
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text: string, done) => {
    void parseJson(request, text, (error, value) => {
      if (error === null && hasDuplicateKeys(text, value)) return done(duplicateKeys())
      done(error, value)
    })
  })
  app.setErrorHandler((error, request, reply) => fail(options, request, reply, error))
  app.setNotFoundHandler((request, reply) => refuseUnknown(options, request, reply))
  app.addHook('onRequest', (request, reply, done) => {
    const mistake = headerMistake(request.raw)
    if (mistake !== null) void sendRefusal(options, request, reply, mistake)
    else if (request.is404) void refuseUnknown(options, request, reply)
    else done()
  })
  for (const route of options.routes) addRoute(app, options, route)
  return app
}

type Validate = ((data: unknown) => unknown) & { errors?: unknown }

/** A process calls a few of its routes, and compiling the schemas of all of them is 40 % of a start. */
export const compiledOnFirstUse =
  <Schema>(compile: (schema: Schema) => Validate): ((schema: Schema) => Validate) =>
  (schema) => {
    let compiled: Validate | null = null
    const validate: Validate = (data) => {
      compiled ??= compile(schema)
      const fits = compiled(data)
      validate.errors = compiled.errors
      return fits
    }
    return validate
  }

const addRoute = (app: FastifyInstance, options: HttpAppOptions, route: Route): void => {
  const readQuery = route.query === undefined ? null : queryReader(route.query)
  const admitted = (request: FastifyRequest, reply: FastifyReply) => admit(options, route, request, reply)
  app.route({
    method: route.file !== undefined ? ['GET', 'HEAD'] : route.method,
    url: route.path,
    ...(route.largestBody !== undefined && { bodyLimit: route.largestBody }),
    config: { always: route.always === true || route.cutOff === true } satisfies RouteConfig,
    schema: {
      ...(route.params !== undefined && { params: route.params }),
      ...(route.query !== undefined && { querystring: route.query }),
      ...(route.body !== undefined && { body: route.body }),
    },
    onRequest:
      route.access === 'anyone'
        ? (request, reply, done) => {
            if (!admitAnyone(options, request, reply)) return
            askForBody(request.raw, reply.raw)
            done()
          }
        : async (request, reply) => {
            await admitted(request, reply)
            if (reply.sent) return reply
            askForBody(request.raw, reply.raw)
          },
    preValidation: (request, reply, done) => {
      // Before the schema, whose complaint would repeat a field's name.
      const unfit = unfitRequest(request)
      if (unfit !== null) return void sendRefusal(options, request, reply, unfit)
      // No body at all is an empty one: the schema then names the field that is missing.
      if (request.body === undefined) request.body = {}
      if (readQuery !== null) request.query = readQuery(request.query as Record<string, unknown>)
      done()
    },
    preHandler: [
      // A body may take half a minute: a key revoked meanwhile, or a certificate that ended, must not act on it.
      ...(route.body !== undefined && route.access !== 'anyone' ? [admitted] : []),
      (request, reply, done) => {
        const field = secretName(request.params) ?? secretName(request.body)
        if (field !== null) return void sendRefusal(options, request, reply, secretRefusal(field))
        done()
      },
    ],
    handler: (request, reply) => answerCall(options, route, request, reply),
  })
}

/** `reply.sent` says whether it was refused: a reply is a thenable without a value, so awaiting it gives no result. */
const admit = async (options: HttpAppOptions, route: Route, request: FastifyRequest, reply: FastifyReply) => {
  if (route.access === 'anyone') return void admitAnyone(options, request, reply)
  const notServed = notNow(options, request)
  if (notServed !== null) return sendRefusal(options, request, reply, notServed)
  const source = sourceAddress(request.raw.socket)
  const principal = await options.authenticate(request.raw, source, route)
  if (principal.kind === 'refused') return sendRefusal(options, request, reply, principal)
  request.setDecorator(principalField, principal)
  if (principal.kind !== 'anonymous') provenConnection(request.raw.socket, actorOf(principal))
  const no = authorise(route, principal, request.params as Record<string, string>)
  if (no !== null) return sendRefusal(options, request, reply, no)
}

/** Without a promise: most calls of a boot storm come here. False: it was refused. */
const admitAnyone = (options: HttpAppOptions, request: FastifyRequest, reply: FastifyReply): boolean => {
  const notServed = notNow(options, request)
  if (notServed === null)
    request.setDecorator(principalField, { kind: 'anonymous', source: sourceAddress(request.raw.socket) })
  else void sendRefusal(options, request, reply, notServed)
  return notServed === null
}

const answerCall = async (options: HttpAppOptions, route: Route, request: FastifyRequest, reply: FastifyReply) => {
  const principal = principalOf(request)
  if (principal === null) throw new Error(`${route.method} ${route.path} was reached without a principal`)
  const no = notNow(options, request)
  if (no !== null) return sendRefusal(options, request, reply, no)
  const outcome = await route.handle({
    principal,
    params: request.params as Record<string, string>,
    query: request.query as Record<string, unknown>,
    body: request.body,
    correlation: request.id,
    evidence: evidenceIn(request.headers),
  })
  if (outcome.kind === 'answer') endWithReply(outcome, reply)
  // A read may have waited for half a minute: a key that was revoked meanwhile must not get the answer.
  if (route.method === 'GET' && principal.kind === 'operator') {
    await admit(options, route, request, reply)
    if (reply.sent) return reply
  }
  switch (outcome.kind) {
    case 'answer':
      return sendAnswer(options, request, reply, outcome)
    case 'file':
      return sendFile(options, request, reply, outcome)
    case 'refused':
      return sendRefusal(options, request, reply, outcome)
  }
}

/** No route has this address and method. A route for every other method of every address would be a tenth of a plane's start. */
const refuseUnknown = (options: HttpAppOptions, request: FastifyRequest, reply: FastifyReply) => {
  const there = routesAt(options.routes, request.url.replace(/\?.*/s, ''))
  const [route] = there
  const methods = there.flatMap(({ method, file }) => (file !== undefined ? ['GET', 'HEAD'] : [method as string]))
  // The router also refuses parameters that are too long.
  if (route === undefined || methods.includes(request.method))
    return sendRefusal(options, request, reply, refuse('NOT_FOUND'))
  const allow = methods.join(', ')
  const refusal = refuse('METHOD_NOT_ALLOWED', `it takes ${allow}`)
  return sendRefusal(options, request, reply.header('allow', allow), refusal, route.path)
}

/** An address that is written out goes before one with a parameter, as in the router. */
export const routesAt = <R extends Pick<Route, 'path'>>(routes: readonly R[], address: string): readonly R[] => {
  const parts = address.split('/')
  const fitting = routes.filter(({ path }) => {
    const wanted = path.split('/')
    return wanted.length === parts.length && wanted.every((part, at) => part === parts[at] || isGiven(part, parts[at]))
  })
  const exact = fitting.filter(({ path }) => path === address)
  return exact.length > 0 ? exact : fitting
}

const isGiven = (part: string, value: string | undefined): boolean => part.startsWith(':') && value !== ''
