import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { Type } from 'typebox'
import type { HttpRequest } from '#platform/http-client.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { testCli } from '../../../test/fakes/test-cli.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { Failure } from './failure.ts'
import { connect, everyPage, type OperatorClient } from './operator-client.ts'

const thingApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/things',
    access: 'viewer',
    summary: 'All things',
    query: Type.Object({ after: Type.Optional(Type.String()), all: Type.Optional(Type.Boolean()) }),
    answer: Type.Object({ things: Type.Array(Type.String()), next: Type.Union([Type.String(), Type.Null()]) }),
  }),
  rename: endpoint({
    method: 'POST',
    path: '/v1/things/:id/rename',
    access: 'operator',
    summary: 'Another name',
    params: Type.Object({ id: Type.String() }),
    body: Type.Object({ to: Type.String() }),
    answer: Type.Object({ id: Type.String() }),
  }),
  make: endpoint({
    method: 'POST',
    path: '/v1/kinds/:tag/things',
    access: 'operator',
    summary: 'Another thing',
    params: Type.Object({ tag: Type.String({ pattern: '^[a-z]+$' }) }),
    body: Type.Object({
      name: Type.String({ pattern: '^[a-z]+$', description: 'Letters' }),
      pin: Type.String({ pattern: '^[0-9]+$' }),
    }),
    answer: Type.Object({}),
  }),
}

/** A plane that answers what it is told, and what it was asked. */
const planeWith = (t: TestContext, replies: readonly { status: number; body: object }[], url?: string) => {
  const data = tempFolder(t)
  fs.writeFileSync(path.join(data, 'admin.key'), `muster_key_${'k'.repeat(43)}`)
  const asked: HttpRequest[] = []
  const openHttp = () => ({
    send: async (request: HttpRequest) => {
      const reply = replies[asked.push(request) - 1]
      assert.ok(reply !== undefined)
      return { status: reply.status, body: JSON.stringify(reply.body) }
    },
    close: () => {},
  })
  const { cli } = testCli({})
  const where = url === undefined ? { data } : { url, keyFile: path.join(data, 'admin.key') }
  const plane = connect({ ...cli, openHttp }, { output: 'table', ...where })
  return { plane, lines: () => asked.map((one) => [one.method, one.path, one.body]) }
}

test('a call is sent as it is declared: parameters escaped, what is undefined left out, no body with GET', async (t) => {
  const { plane, lines } = planeWith(t, [
    { status: 200, body: { things: [], next: null } },
    { status: 200, body: { id: 'a b' } },
  ])
  await plane.ask(thingApi.list, { query: { all: true, after: undefined } })
  assert.deepEqual(await plane.ask(thingApi.rename, { params: { id: 'a/b' }, body: { to: 'a b' } }), { id: 'a b' })
  assert.deepEqual(lines(), [
    ['GET', '/v1/things?all=true', null],
    ['POST', '/v1/things/a%2Fb/rename', '{"to":"a b"}'],
  ])
})

test('a word that can name nothing is said before anything is sent, and what may be a secret is not repeated', async (t) => {
  const refusal = { code: 'REQUEST_INVALID', message: 'No.', detail: null, next: 'ID', retry_after_ms: null }
  const { plane, lines } = planeWith(t, [{ status: 400, body: refusal }])
  const make = (tag: string, name: string) => plane.tryAsk(thingApi.make, { params: { tag }, body: { name, pin: 'x' } })
  for (const [tag, name, message] of [
    ['A b', 'c', 'A b is not a tag.'],
    ['a', 'C\u001b[31m', 'C\\x1b[31m is not a name: letters.'],
  ] as const) {
    const said = await make(tag, name)
    assert.ok(said instanceof Failure)
    assert.deepEqual([said.code, said.exit, said.message], ['USAGE', 2, message])
  }
  assert.deepEqual(lines(), [])
  const said = await make('a', 'b')
  assert.ok(said instanceof Failure)
  assert.equal(said.code, 'REQUEST_INVALID')
})

test('an answer that does not fit the declaration is no answer; a refusal is a value where it is asked for', async (t) => {
  const refusal = { code: 'THING_NOT_FOUND', message: 'No.', detail: null, next: 'ID', retry_after_ms: null }
  const { plane } = planeWith(t, [
    { status: 200, body: { things: 3 } },
    { status: 404, body: refusal },
    { status: 404, body: { ...refusal, code: 'NOT_FOUND' } },
  ])
  await assert.rejects(plane.ask(thingApi.list), { code: 'UNEXPECTED_ANSWER', detail: /^GET \/v1\/things answered/ })
  const refused = await plane.tryAsk(thingApi.rename, { params: { id: 'a' }, body: { to: 'b' }, about: { ID: 'a' } })
  assert.ok(refused instanceof Failure)
  assert.deepEqual([refused.code, refused.next], ['THING_NOT_FOUND', 'a'])
  const unknown = { code: 'NOT_FOUND', message: /older version\.$/, detail: 'GET /v1/things' }
  await assert.rejects(plane.tryAsk(thingApi.list), unknown)
})

test('who asks a listener for machines learns where operators ask', async (t) => {
  const refusal = { code: 'NOT_FOUND', message: 'No.', detail: null, next: 'ID', retry_after_ms: null }
  const { plane } = planeWith(t, [{ status: 404, body: refusal }], 'https://plane.example:8443')
  const wrongPort = { code: 'NOT_FOUND', message: /where machines reach it/, next: /--operator-listen, port 8440/ }
  await assert.rejects(plane.tryAsk(thingApi.list), wrongPort)
})

test('what a declaration asks for has to be given, and nothing else can be', () => {
  // Never called: only whether it compiles.
  const calls = (plane: OperatorClient) => [
    // @ts-expect-error without its parameter
    plane.ask(thingApi.rename, { body: { to: 'b' } }),
    // @ts-expect-error without its body
    plane.ask(thingApi.rename, { params: { id: 'a' } }),
    // @ts-expect-error there is no such question
    plane.ask(thingApi.list, { query: { everything: true } }),
  ]
  assert.equal(typeof calls, 'function')
})

test('every page of a list is asked for, from where the one before ended', async () => {
  const pages = [
    { things: ['a', 'b'], next: 'b' },
    { things: ['c'], next: null },
  ]
  const asked: (string | undefined)[] = []
  const all = await everyPage(
    async (after) => {
      asked.push(after)
      const page = pages[asked.length - 1]
      assert.ok(page !== undefined)
      return page
    },
    ({ things }) => things,
  )
  assert.deepEqual(
    [all, asked],
    [
      ['a', 'b', 'c'],
      [undefined, 'b'],
    ],
  )
})
