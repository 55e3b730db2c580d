import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeUpgrade } from './judge-upgrade.ts'

const good = {
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'muster.v1',
}

const codeOf = (changes: Record<string, string | undefined>, method = 'GET'): string | null =>
  judgeUpgrade({ method, headers: { ...good, ...changes } })?.code ?? null

test('an upgrade to our subprotocol is one, also when more are offered', () => {
  assert.equal(codeOf({}), null)
  assert.equal(codeOf({ upgrade: 'WebSocket', 'sec-websocket-protocol': 'muster.v2 , muster.v1' }), null)
})

test('everything the WebSocket library would refuse in its own words is refused in ours', () => {
  for (const changes of [
    { upgrade: 'h2c' },
    { upgrade: undefined },
    { 'sec-websocket-version': '8' },
    { 'sec-websocket-version': undefined },
    { 'sec-websocket-key': 'short' },
    { 'sec-websocket-key': undefined },
    { 'sec-websocket-protocol': 'muster.v11' },
    { 'sec-websocket-protocol': '' },
    { 'sec-websocket-protocol': undefined },
  ]) {
    assert.equal(codeOf(changes), 'REQUEST_INVALID', JSON.stringify(changes))
  }
  assert.equal(codeOf({}, 'POST'), 'METHOD_NOT_ALLOWED')
})
