import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loopbackAddress, loopbackRule, sameOriginRule } from './host-rule.ts'

const rule = loopbackRule('127.0.0.1', 8440)
const code = (host: string | undefined, origin?: string) => rule({ host, origin })?.code ?? null

test('the names of this machine with the right port are answered', () => {
  for (const host of ['127.0.0.1:8440', 'localhost:8440', 'LOCALHOST:8440', '[::1]:8440'])
    assert.equal(code(host), null)
})

test('another loopback address is answered where it is the one listened on', () => {
  const caller = { host: '127.0.0.2:8440', origin: undefined }
  assert.equal(loopbackRule('127.0.0.2', 8440)(caller), null)
  assert.equal(rule(caller)?.code, 'HOST_NOT_ALLOWED')
})

test('any other Host is refused, so a rebound name gets nothing', () => {
  const others = [
    'evil.example:8440',
    '127.0.0.1',
    'localhost:8441',
    '127.0.0.1.evil.example:8440',
    '::1:8440',
    '',
    undefined,
  ]
  for (const host of others) assert.equal(code(host), 'HOST_NOT_ALLOWED', String(host))
})

test('a page of another site is refused even under the right Host', () => {
  for (const origin of ['http://evil.example', 'null', 'https://127.0.0.1:8440', 'http://localhost:3000', '']) {
    assert.equal(code('127.0.0.1:8440', origin), 'HOST_NOT_ALLOWED', origin)
  }
  assert.equal(code('127.0.0.1:8440', 'http://localhost:8440'), null)
})

test('port 80 may be left out', () => {
  assert.equal(loopbackRule('127.0.0.1', 80)({ host: 'localhost', origin: 'http://localhost' }), null)
})

test('under TLS the origin has to be the host itself', () => {
  assert.equal(sameOriginRule({ host: 'plane.example:8440', origin: undefined }), null)
  assert.equal(sameOriginRule({ host: 'plane.example:8440', origin: 'https://plane.example:8440' }), null)
  assert.notEqual(sameOriginRule({ host: 'plane.example:8440', origin: 'https://evil.example' }), null)
  assert.notEqual(sameOriginRule({ host: undefined, origin: 'https://evil.example' }), null)
})

test('only addresses of this machine count as loopback', () => {
  assert.equal(loopbackAddress('localhost'), '127.0.0.1')
  assert.equal(loopbackAddress('127.0.0.1'), '127.0.0.1')
  assert.equal(loopbackAddress('127.1.2.3'), '127.1.2.3')
  assert.equal(loopbackAddress('::1'), '::1')
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.evil.example', 'localhost.evil.example', '']) {
    assert.equal(loopbackAddress(host), null, host)
  }
})
