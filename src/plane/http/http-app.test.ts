import assert from 'node:assert/strict'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { InjectOptions } from 'fastify'
import { Type } from 'typebox'
import type { OperatorPrincipal } from '#domain/core/principal.ts'
import { refuse } from '#domain/core/refusal.ts'
import { silentLog } from '#platform/log.ts'
import { routesAt, bodyLimit, compiledOnFirstUse, httpApp, type HttpAppOptions } from './http-app.ts'
import type { Standing } from '#plane/store/contract/replicas.ts'
import type { Refused } from './http-reply.ts'
import { UpgradeUnfinished } from '#plane/store/contract/store-errors.ts'
import { answer, type Call, type Route } from './route.ts'

const viewer: OperatorPrincipal = {
  kind: 'operator',
  id: 'k1',
  name: 'vera',
  role: 'viewer',
  credential: { by: 'operator-key' },
  source: '127.0.0.1',
}

const echo: Route = {
  method: 'POST',
  path: '/v1/things/:id',
  access: 'anyone',
  summary: 'Answers what it was given',
  query: Type.Object(
    { count: Type.Optional(Type.Integer({ minimum: 1 })), dry: Type.Optional(Type.Boolean()) },
    { additionalProperties: false },
  ),
  body: Type.Object({ reason: Type.String({ minLength: 1 }) }, { additionalProperties: false }),
  handle: async ({ body, query, params }: Call) => answer({ body, query, params }),
}

const at = (path: string, handle: Route['handle'], access: Route['access'] = 'anyone'): Route => ({
  method: 'GET',
  path,
  access,
  summary: 'For a test',
  handle,
})

const appWith = (routes: readonly Route[], options: Partial<HttpAppOptions> = {}) => {
  const refusals: Refused[] = []
  const app = httpApp({
    routes,
    authenticate: async ({ headers }) => (headers.authorization === 'vera' ? viewer : refuse('OPERATOR_KEY_REQUIRED')),
    correlation: () => 'c0ffee',
    trouble: () => null,
    callers: 'operators',
    standing: () => ({ kind: 'serving' }),
    onRefusal: (refused) => void refusals.push(refused),
    onAborted: () => {},
    log: silentLog,
    ...options,
  })
  return { app, refusals }
}

const post = (payload: string, type = 'application/json', query = '') => ({
  method: 'POST' as const,
  url: `/v1/things/a${query}`,
  headers: { 'content-type': type },
  payload,
})

const refusedWith = async (request: InjectOptions, code: string, detail?: RegExp) => {
  const { app, refusals } = appWith([echo])
  const { body } = await app.inject(request)
  const error = JSON.parse(body) as { code: string; detail: string | null }
  assert.equal(error.code, code)
  if (detail !== undefined) assert.match(error.detail!, detail)
  assert.deepEqual(
    refusals.map((refused) => refused.refusal.code),
    [code],
  )
}

test('a call that fits is answered, uncached and with its correlation', async () => {
  const { app, refusals } = appWith([echo])
  const reply = await app.inject(post('{"reason":"x"}', 'application/json', '?count=3&dry=true'))
  assert.equal(reply.statusCode, 200)
  assert.deepEqual(reply.json(), { body: { reason: 'x' }, query: { count: 3, dry: true }, params: { id: 'a' } })
  assert.equal(reply.headers['cache-control'], 'no-store')
  assert.equal(reply.headers['muster-correlation'], 'c0ffee')
  assert.equal('x-powered-by' in reply.headers, false)
  assert.deepEqual(refusals, [])
})

test('a field that is not known is refused, not dropped', () =>
  refusedWith(post('{"reason":"x","admin":true}'), 'REQUEST_INVALID', /not known: admin/))
test('a number is not a text', () =>
  refusedWith(post('{"reason":1}'), 'REQUEST_INVALID', /body\/reason must be string/))
test('a missing body is refused by the field it lacks', () =>
  refusedWith({ method: 'POST', url: '/v1/things/a' }, 'REQUEST_INVALID', /reason/))
test('a refusal names the field that is at fault, and says whether this plane knows it', async () => {
  const { app } = appWith([echo])
  const fieldOf = async (request: InjectOptions) => {
    const { field, field_unknown: unknown } = (await app.inject(request)).json()
    return [field, unknown]
  }
  assert.deepEqual(await fieldOf(post('{"reason":"x","admin":true}')), ['admin', true])
  assert.deepEqual(await fieldOf(post('{"reason":1}')), ['reason', undefined])
  assert.deepEqual(await fieldOf(post('{}')), ['reason', undefined])
  assert.deepEqual(await fieldOf(post('{"reason":"\\u0000"}')), ['reason', undefined])
  assert.deepEqual(await fieldOf(post('{"reason":"x"}', 'application/json', '?count=0')), ['count', undefined])
  assert.deepEqual(await fieldOf(post('{"reason":"x"}', 'application/json', '?colour=1')), ['colour', true])
  assert.deepEqual(await fieldOf(post('[]')), [undefined, undefined])
  assert.deepEqual(await fieldOf(post('{"reason":')), [undefined, undefined])
})
test('the name of an unknown field is bounded, and no secret in it is repeated', async () => {
  const { app } = appWith([echo])
  const fieldOf = async (name: string) =>
    (await app.inject(post(JSON.stringify({ reason: 'x', [name]: 1 })))).json().field
  assert.equal((await fieldOf('x'.repeat(1000))).length, 128)
  assert.doesNotMatch(await fieldOf(`enroll_${'a'.repeat(43)}`), /aaaa/)
})
test('malformed JSON is refused', () => refusedWith(post('{"reason":'), 'REQUEST_INVALID'))
test('a body that names __proto__ is refused', () =>
  refusedWith(post('{"__proto__":{"a":1},"reason":"x"}'), 'REQUEST_INVALID'))
test('a body that is not JSON by its type is refused', () =>
  refusedWith(post('{"reason":"x"}', 'text/plain'), 'REQUEST_INVALID', /application\/json/))
test('a query value that is no integer is refused', () =>
  refusedWith(post('{"reason":"x"}', 'application/json', '?count=1e3'), 'REQUEST_INVALID', /query\/count/))
test('a query value given twice is refused', () =>
  refusedWith(post('{"reason":"x"}', 'application/json', '?count=1&count=2'), 'REQUEST_INVALID', /query\/count/))
test('a body above the limit is refused', () =>
  refusedWith(post(JSON.stringify({ reason: 'x'.repeat(bodyLimit) })), 'TOO_LARGE'))
test('an unknown address is refused before its body is read', () =>
  refusedWith({ ...post('{"reason":'), url: '/v1/nothing' }, 'NOT_FOUND'))
test('a trailing slash is another address', () => refusedWith({ ...post('{}'), url: '/v1/things/a/' }, 'NOT_FOUND'))
test('another case is another address', () => refusedWith({ ...post('{}'), url: '/V1/things/a' }, 'NOT_FOUND'))
test('an endless parameter is refused', () =>
  refusedWith({ ...post('{}'), url: `/v1/things/${'a'.repeat(500)}` }, 'NOT_FOUND'))
test('broken percent-encoding is refused', () =>
  refusedWith({ ...post('{}'), url: '/v1/things/%E0%A4%A' }, 'REQUEST_INVALID'))

test('another method is refused, and the answer says which would do', async () => {
  const { app, refusals } = appWith([echo])
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
    const reply = await app.inject({ method, url: '/v1/things/a', payload: '{"reason":' })
    assert.equal(reply.statusCode, 405, method)
    assert.equal(reply.headers['allow'], 'POST')
  }
  const query = await app.inject({ method: 'GET', url: '/v1/things/a?x=/y' })
  assert.equal(query.statusCode, 405)
  assert.deepEqual(new Set(refusals.map(({ path }) => path)), new Set(['/v1/things/:id']))
})

test('the routes of an address are those that are written out like it, or else those with a parameter in its place', () => {
  const paths = (address: string): readonly string[] => routesAt(known, address).map(({ path }) => path)
  const known = ['/v1/nodes/:id', '/v1/nodes/:id/health', '/v1/nodes/all', '/v1/nodes'].map((path) => ({ path }))
  assert.deepEqual(paths('/v1/nodes/a'), ['/v1/nodes/:id'])
  assert.deepEqual(paths('/v1/nodes/all'), ['/v1/nodes/all'])
  assert.deepEqual(paths('/v1/nodes'), ['/v1/nodes'])
  assert.deepEqual(paths('/v1/nodes/'), [])
  assert.deepEqual(paths('/v1/nodes//health'), [])
  assert.deepEqual(paths('/v1/nodes/a/b'), [])
})

test('a caller who may not is refused before body and schema are looked at', async () => {
  const guarded: Route = { ...echo, access: 'operator', handle: async () => assert.fail('reached') }
  const { app, refusals } = appWith([guarded])
  const stranger = await app.inject(post('{"reason":'))
  assert.equal(stranger.json().code, 'OPERATOR_KEY_REQUIRED')
  const request = post('{"reason":')
  const known = await app.inject({ ...request, headers: { ...request.headers, authorization: 'vera' } })
  assert.equal(known.statusCode, 403)
  assert.equal(known.json().code, 'ROLE_FORBIDDEN')
  assert.deepEqual(
    refusals.map(({ principal, path }) => [principal?.kind ?? null, path]),
    [
      [null, '/v1/things/:id'],
      ['operator', '/v1/things/:id'],
    ],
  )
})

test('a caller who loses the right while the body is on its way does not act', async () => {
  const guarded: Route = { ...echo, access: 'viewer', handle: async () => assert.fail('reached') }
  const answers = [viewer, refuse('OPERATOR_KEY_INVALID')]
  const { app } = appWith([guarded], { authenticate: async () => answers.shift() ?? assert.fail('asked again') })
  const reply = await app.inject(post('{"reason":"x"}'))
  assert.deepEqual([reply.statusCode, reply.json().code], [401, 'OPERATOR_KEY_INVALID'])
})

test('a fault is logged whole and answered without its cause', async () => {
  const logged: unknown[] = []
  const log = { ...silentLog, error: (what: unknown) => void logged.push(what) } as typeof silentLog
  const broken = at('/broken', async () => {
    throw new Error('disk 7 said: no')
  })
  const one = await appWith([broken], { log }).app.inject('/broken')
  assert.equal(one.statusCode, 503)
  assert.equal(one.json().code, 'UNAVAILABLE')
  assert.doesNotMatch(one.body, /disk 7/)
  assert.match(String((logged[0] as { err: Error }).err), /disk 7 said: no/)
  const full = await appWith([broken], { trouble: () => 'disk' }).app.inject('/broken')
  assert.equal(full.json().code, 'DISK_TROUBLE')
})

test('a commit that waits for an upgrade is refused and not logged as a fault; an older agent gets a code it knows', async () => {
  const logged: unknown[] = []
  const log = { ...silentLog, error: (what: unknown) => void logged.push(what) } as typeof silentLog
  const early = at('/early', async () => {
    throw new UpgradeUnfinished('probeSilenceMs of a profile is new')
  })
  const { app } = appWith([early], { log })
  const reply = await app.inject('/early')
  assert.deepEqual(
    [reply.statusCode, reply.json().code, reply.headers['retry-after']],
    [409, 'UPGRADE_UNFINISHED', '30'],
  )
  assert.equal(reply.json().detail, 'probeSilenceMs of a profile is new')
  const agent = { accept: 'application/json', 'user-agent': undefined }
  const older = await app.inject({ url: '/early', headers: agent as unknown as Record<string, string> })
  assert.deepEqual([older.statusCode, older.json().code], [503, 'UNAVAILABLE'])
  assert.deepEqual(logged, [])
})

test('a refusal with a time says so in its header too', async () => {
  const busy = at('/busy', async () => ({ ...refuse('BUSY'), retryAfterMs: 2500 }))
  const reply = await appWith([busy]).app.inject('/busy')
  assert.equal(reply.headers['retry-after'], '3')
  assert.equal(reply.json().retry_after_ms, 2500)
})

test('a replica that lost its lease while it worked on a call does not say what it decided', async () => {
  const expired: Standing = { kind: 'expired', why: 'the lease was last renewed 16 s ago' }
  const outcomes = [answer({ admitted: true }), refuse('TOKEN_USED')]
  for (const outcome of outcomes) {
    let standing: Standing = { kind: 'serving' }
    const stopped = at('/stopped', async () => {
      standing = expired
      return outcome
    })
    const { app, refusals } = appWith([stopped], { standing: () => standing })
    const reply = await app.inject('/stopped')
    assert.deepEqual([reply.statusCode, reply.json().code], [503, 'REPLICA_BEHIND'])
    assert.ok(reply.headers['retry-after'] !== undefined)
    assert.deepEqual(
      refusals.map(({ refusal }) => refusal.code),
      ['REPLICA_BEHIND'],
    )
  }
})

test('an answer in pieces ends when it is read, when it is refused after all, and when its caller has hung up', async (t) => {
  const asked = Promise.withResolvers<void>()
  const ended: string[] = []
  const endings = new Map(['/read', '/revoked', '/gone'].map((path) => [path, Promise.withResolvers<void>()]))
  const pieces = (path: string): AsyncIterableIterator<string> => ({
    next: async () => ({ done: true, value: undefined }),
    async return() {
      ended.push(path)
      endings.get(path)?.resolve()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  })
  let isRevoked = false
  const hasHungUp = Promise.withResolvers<void>()
  const reading = async (path: string) => ({ ...answer('x'), body: pieces(path) })
  const routes = [
    at('/read', () => reading('/read'), 'viewer'),
    at('/revoked', async () => ((isRevoked = true), reading('/revoked')), 'viewer'),
    at('/gone', async () => (asked.resolve(), await hasHungUp.promise, reading('/gone'))),
  ]
  const { app } = appWith(routes, {
    authenticate: async () => (isRevoked ? refuse('OPERATOR_KEY_REQUIRED') : viewer),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as AddressInfo
  const get = (path: string) =>
    http.get({ port, host: '127.0.0.1', path, agent: false }, (response) => response.resume()).on('error', () => {})
  for (const path of ['/read', '/revoked']) {
    get(path)
    await endings.get(path)?.promise
  }
  app.server.once('connection', (socket) => socket.once('close', () => hasHungUp.resolve()))
  const request = get('/gone')
  await asked.promise
  request.destroy()
  await endings.get('/gone')?.promise
  assert.deepEqual([...new Set(ended)], ['/read', '/revoked', '/gone'])
})

test('a replica that is behind handles no mutation, also when it fell behind while the body came', async () => {
  const behind: Standing = { kind: 'behind', why: 'what the other replicas have committed was last heard of 11 s ago' }
  const never: Route = { ...echo, handle: async () => assert.fail('reached') }
  const stands: Standing[] = [{ kind: 'serving' }, behind, behind]
  const { app } = appWith([never], { standing: () => stands.shift() ?? behind })
  const reply = await app.inject(post('{"reason":"x"}'))
  assert.deepEqual([reply.statusCode, reply.json().code], [503, 'REPLICA_BEHIND'])
  const looking = appWith([at('/look', async () => answer({ ok: 1 }))], { standing: () => behind })
  assert.equal((await looking.app.inject('/look')).statusCode, 200)
  const machines = appWith([at('/look', async () => assert.fail('reached'))], {
    standing: () => behind,
    callers: 'machines',
  })
  assert.equal((await machines.app.inject('/look')).json().code, 'REPLICA_BEHIND')
})

test('how a replica is can be asked whatever it is', async () => {
  const health: Route = { ...at('/readyz', async () => answer({ ready: false }, 503)), always: true }
  const { app } = appWith([health], { standing: () => ({ kind: 'expired', why: 'this replica has no lease' }) })
  assert.deepEqual((await app.inject('/readyz')).json(), { ready: false })
})

test('a schema is compiled once, when it is first needed, and says why something does not fit', () => {
  const compiled: string[] = []
  const compile = compiledOnFirstUse((schema: string) => {
    compiled.push(schema)
    const validate = (data: unknown): boolean => {
      validate.errors = data === schema ? null : [`no ${schema}`]
      return data === schema
    }
    validate.errors = null as string[] | null
    return validate
  })
  const [one, other] = [compile('one'), compile('other')]
  assert.deepEqual(compiled, [])
  assert.deepEqual([one('other'), one.errors], [false, ['no one']])
  assert.deepEqual([one('one'), one.errors, other.errors], [true, null, undefined])
  assert.deepEqual(compiled, ['one'])
})
