import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Route } from './route.ts'
import { matchUpgrade } from './upgrade-route.ts'

const route = (path: string, kind?: 'upgrade'): Route => ({
  method: 'GET',
  path,
  access: 'node-itself',
  summary: '',
  handle: () => Promise.reject(new Error('not called')),
  ...(kind === undefined ? {} : { kind }),
})

const routes = [route('/v1/bundle'), route('/v1/nodes/:id/channel', 'upgrade'), route('/v1/nodes/:id/confirm')]

const idOf = (url: string): string | null => matchUpgrade(routes, url)?.params['id'] ?? null

test('the address of a channel is matched, with the node it names', () => {
  assert.equal(idOf('/v1/nodes/gpu-001/channel'), 'gpu-001')
  assert.equal(idOf('/v1/nodes/gpu-001/channel?x=/v1/nodes/other/channel'), 'gpu-001')
})

test('a name is not decoded: another spelling names no node', () => {
  assert.equal(idOf('/v1/nodes/%67pu-001/channel'), '%67pu-001')
  assert.equal(idOf('/v1/nodes/__proto__/channel'), '__proto__')
})

test('anything else is no channel', () => {
  for (const url of [
    '',
    '/',
    '*',
    '/v1/nodes//channel',
    '/v1/nodes/gpu-001/channel/',
    '//v1/nodes/gpu-001/channel',
    '/v1/nodes/gpu-001/../gpu-002/channel',
    '/v1/nodes/gpu-001/CHANNEL',
    'https://localhost/v1/nodes/gpu-001/channel',
  ]) {
    assert.equal(matchUpgrade(routes, url), null, url)
  }
})

test('a route that is no upgrade is not upgraded', () => {
  assert.equal(matchUpgrade(routes, '/v1/bundle'), null)
  assert.equal(matchUpgrade(routes, '/v1/nodes/gpu-001/confirm'), null)
})
