import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { answer, serve, type Call } from './route.ts'

const thingApi = {
  show: endpoint({
    method: 'GET',
    path: '/v1/things/:id',
    access: 'viewer',
    summary: 'One thing',
    params: Type.Object({ id: Type.String() }),
    answer: Type.Object({ id: Type.String(), tags: Type.Array(Type.String()) }),
  }),
  remove: endpoint({ method: 'POST', path: '/v1/things/:id/remove', access: 'operator', summary: 'No more of it' }),
}

const call: Call = {
  principal: {
    kind: 'operator',
    id: 'k1',
    name: 'vera',
    role: 'viewer',
    credential: { by: 'operator-key' },
    source: '::1',
  },
  params: { id: 'a' },
  query: {},
  body: {},
  correlation: 'c1',
  evidence: null,
}

test('a route is its declaration with its handler, in the order of the declarations', async () => {
  const tags: readonly string[] = ['new']
  const routes = serve(thingApi, {
    remove: async () => answer({}),
    show: async ({ params, principal }) => answer({ id: `${params.id} for ${principal.role}`, tags }),
  })
  assert.deepEqual(
    routes.map(({ handle: _handle, ...declared }) => declared),
    [thingApi.show, thingApi.remove],
  )
  assert.deepEqual(await routes[0]?.handle(call), answer({ id: 'a for viewer', tags: ['new'] }))
})

test('neither a declaration without a handler nor a handler without a declaration compiles, or starts', () => {
  const show = async () => answer({ id: 'a', tags: [] })
  const remove = async () => answer({})
  // @ts-expect-error `remove` has no handler
  assert.throws(() => serve(thingApi, { show }), /POST \/v1\/things\/:id\/remove has no handler/)
  // @ts-expect-error nothing declares `rename`
  assert.throws(() => serve(thingApi, { show, remove, rename: remove }), /nothing declares what rename handles/)
})

test('a handler cannot answer something else than is declared, nor read what its path does not have', () => {
  const remove = async () => answer({})
  // @ts-expect-error without tags
  serve(thingApi, { remove, show: async () => answer({ id: 'a' }) })
  // @ts-expect-error there is no :name
  serve(thingApi, { remove, show: async ({ params }) => answer({ id: params.name, tags: [] }) })
})
