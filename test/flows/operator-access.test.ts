// Nobody reaches a handler without having proved who they are. The walk takes every route there is, so a new one is in it.

import assert from 'node:assert/strict'
import * as http from 'node:http'
import { test, type TestContext } from 'node:test'
import { roleAllows, roles, type Role } from '#domain/core/principal.ts'
import { httpApp } from '#plane/http/http-app.ts'
import { openOperatorAuthn } from '#plane/authn/operator-key.ts'
import { openFeed } from '#plane/core/feed.ts'
import { operatorRoutes, type OperatorRouteParts, type OperatorRouteSources } from '#plane/boot/operator-routes.ts'
import { answer, type Route } from '#plane/http/route.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { setUpOperatorServer } from './operator-setup.ts'
import type { Core } from '#plane/core/core.ts'

/** Described without a plane behind them: the walk never lets a handler of theirs run. */
const routes = operatorRoutes({} as Core, {} as OperatorRouteParts, {} as OperatorRouteSources)
const openToAnyone = ['GET /healthz', 'GET /readyz', 'GET /openapi.json']
const nameOf = ({ method, path }: Route): string => `${method} ${path}`
const urlOf = ({ path }: Route): string => path.replace(':id', 'gpu-001').replace(':name', 'gpu-cloud')

const garbage = ['{"a":', '[]', 'null', '{"__proto__":{}}', JSON.stringify({ reason: 'x'.repeat(70_000) }), '\u0000']

const guardedApp = async (t: TestContext) => {
  const { store, keys, keyBook } = await setUpOperatorServer(t)
  let reached = 0
  const operators = openOperatorAuthn(store, keyBook, systemClock, openFeed())
  const app = httpApp({
    routes: routes.map((route) => ({
      ...route,
      handle: async () => {
        reached++
        return answer({})
      },
    })),
    authenticate: ({ headers }, source) => operators.byKey(headers.authorization, source, false),
    correlation: () => 'walk',
    trouble: () => null,
    callers: 'operators',
    standing: () => ({ kind: 'serving' }),
    onRefusal: () => undefined,
    onAborted: () => undefined,
    log: silentLog,
  })
  const inject = async (route: Route, authorization: string | null, payload: string) => {
    const headers = { 'content-type': 'application/json', ...(authorization !== null && { authorization }) }
    const sends = route.method !== 'GET' && { payload }
    const reply = await app.inject({ method: route.method, url: urlOf(route), headers, ...sends })
    return { status: reply.statusCode, code: (reply.json() as { code?: string }).code }
  }
  return { inject, keys, reached: () => reached }
}

test('every route says who may call it, and only health and description are open to anyone', () => {
  assert.ok(routes.length >= 30)
  for (const route of routes) assert.ok(['anyone', ...roles].includes(route.access), nameOf(route))
  assert.deepEqual(routes.filter(({ access }) => access === 'anyone').map(nameOf), openToAnyone)
})

test('every route that takes a body refuses fields it does not know', () => {
  for (const { method, path, body } of routes) {
    if (method === 'GET') continue
    assert.equal((body as { additionalProperties?: boolean }).additionalProperties, false, `${method} ${path}`)
  }
})

test('without a key no route is reached, whatever the body', async (t) => {
  const { inject, reached } = await guardedApp(t)
  for (const route of routes.filter(({ access }) => access !== 'anyone')) {
    for (const payload of garbage) {
      assert.deepEqual(
        await inject(route, null, payload),
        { status: 401, code: 'OPERATOR_KEY_REQUIRED' },
        nameOf(route),
      )
    }
  }
  assert.equal(reached(), 0)
})

test('with something that is not a valid key no route is reached', async (t) => {
  const { inject, keys, reached } = await guardedApp(t)
  const wrong = [
    `Bearer muster_key_${'A'.repeat(43)}`,
    `Bearer ${keys['platform-admin']}x`,
    `Bearer  ${keys['platform-admin']}`,
    `Basic ${keys['platform-admin']}`,
    keys['platform-admin'],
    'Bearer',
    '',
  ]
  for (const route of routes.filter(({ access }) => access !== 'anyone')) {
    for (const authorization of wrong) {
      const { status, code } = await inject(route, authorization, '{"a":')
      assert.equal(status, 401, nameOf(route))
      assert.equal(code, 'OPERATOR_KEY_INVALID')
    }
  }
  assert.equal(reached(), 0)
})

test('a role below the one a route asks for is refused before its body is read', async (t) => {
  const { inject, keys, reached } = await guardedApp(t)
  let refused = 0
  for (const route of routes) {
    if (route.access === 'anyone') continue
    for (const role of roles.filter((has) => !roleAllows(has, route.access as Role))) {
      for (const payload of garbage) {
        const expected = { status: 403, code: 'ROLE_FORBIDDEN' }
        assert.deepEqual(await inject(route, `Bearer ${keys[role]}`, payload), expected, `${nameOf(route)} as ${role}`)
        refused++
      }
    }
  }
  assert.ok(refused > 100)
  assert.equal(reached(), 0)
})

test('a NUL character or half of a surrogate pair in any field of any route is refused, and nothing is reached', async (t) => {
  const { inject, keys, reached } = await guardedApp(t)
  let fields = 0
  for (const route of routes.filter(({ method }) => method !== 'GET')) {
    const { properties = {} } = route.body as { properties?: object }
    for (const field of [...Object.keys(properties), 'unknown\u0000'])
      for (const text of ['a\u0000', '\ud800', ['\udc00']]) {
        const payload = JSON.stringify({ [field]: text })
        const expected = { status: 400, code: 'REQUEST_INVALID' }
        const got = await inject(route, `Bearer ${keys['platform-admin']}`, payload)
        assert.deepEqual(got, expected, `${nameOf(route)} ${field}`)
        fields++
      }
  }
  for (const route of routes.filter(({ path, access }) => path.includes('/:') && access !== 'anyone')) {
    const named = { ...route, path: route.path.replace(/:\w+/, 'a%00') }
    const { status } = await inject(named, `Bearer ${keys['platform-admin']}`, '{}')
    assert.equal(status, 400, nameOf(route))
    fields++
  }
  assert.ok(fields > 200, String(fields))
  assert.equal(reached(), 0)
})

test('with the right role, garbage is refused by the schema and still reaches nothing', async (t) => {
  const { inject, keys, reached } = await guardedApp(t)
  for (const route of routes.filter(({ method }) => method !== 'GET')) {
    for (const payload of garbage) {
      const { status, code } = await inject(route, `Bearer ${keys['platform-admin']}`, payload)
      assert.ok(status === 400 || status === 413, `${nameOf(route)} answered ${status}`)
      assert.ok(code === 'REQUEST_INVALID' || code === 'TOO_LARGE')
    }
  }
  assert.equal(reached(), 0)
})

test('a revoked key is refused at its next call', async (t) => {
  const { call } = await setUpOperatorServer(t)
  const { body } = await call('viewer', 'GET', '/v1/whoami')
  assert.equal((await call('platform-admin', 'POST', `/v1/keys/${body.id}/revoke`)).status, 200)
  assert.equal((await call('viewer', 'GET', '/v1/whoami')).body.code, 'OPERATOR_KEY_INVALID')
})

test('the last platform-admin key cannot be revoked', async (t) => {
  const { call } = await setUpOperatorServer(t)
  const { body } = await call('platform-admin', 'GET', '/v1/whoami')
  assert.equal((await call('platform-admin', 'POST', `/v1/keys/${body.id}/revoke`)).body.code, 'LAST_ADMIN_KEY')
})

test('what callers were refused is in the journal, with who and from where', async (t) => {
  const { call, journal } = await setUpOperatorServer(t)
  await call(null, 'GET', '/v1/nodes')
  await call('viewer', 'POST', '/v1/tokens', { node: 'gpu-001' })
  await call('operator', 'POST', '/v1/nodes/gpu-404/drain')
  // The entry follows the answer; the next commit comes behind it.
  await call('operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  const refused = await journal('refused')
  assert.deepEqual(
    refused.map(({ actor, source, body }) => [actor, source, body['code'], body['attempt']]),
    [
      ['anonymous', 'local', 'OPERATOR_KEY_REQUIRED', 'GET /v1/nodes'],
      ['operator:the-viewer', 'local', 'ROLE_FORBIDDEN', 'POST /v1/tokens'],
      ['operator:the-operator', 'local', 'NODE_NOT_FOUND', 'POST /v1/nodes/:id/drain'],
    ],
  )
})

test('callers without a key are journaled within the part of the budget that one source gets, and counted beyond it', async (t) => {
  const { call, journal, timers } = await setUpOperatorServer(t)
  for (let i = 0; i < 130; i++) await call(null, 'GET', '/v1/nodes')
  // The entry follows the answer; the next commit comes behind it.
  await call('operator', 'POST', '/v1/nodes', { id: 'gpu-000' })
  assert.equal((await journal('refused')).length, 25)
  timers.advance(61_000)
  await call('operator', 'POST', '/v1/nodes', { id: 'gpu-001' })
  assert.deepEqual(
    (await journal('refusals.counted')).map(({ body }) => body['count']),
    [105],
  )
})

test('over a real connection an oversized body is refused while it is still being sent', async (t) => {
  const { listener, keys } = await setUpOperatorServer(t)
  const url = new URL(listener.httpUrl!)
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { authorization: `Bearer ${keys.operator}`, 'content-type': 'application/json' }
    const request = http.request({ host: url.hostname, port: url.port, method: 'POST', path: '/v1/nodes', headers })
    request.on('response', (response) => resolve(response.resume().statusCode))
    request.on('error', reject)
    request.end(`{"id":"${'x'.repeat(70_000)}"}`)
  })
  assert.equal(status, 413)
})
