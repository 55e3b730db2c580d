import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isForHost } from './host-name.ts'

const is = (host: string, dnsNames: string[], ips: string[] = []): boolean => isForHost({ dnsNames, ips }, host)

test('a name is compared whole and without regard to case', () => {
  assert.ok(is('api.example.test', ['API.example.test']))
  assert.ok(is('api.example.test.', ['api.example.test']))
  assert.ok(!is('api.example.test', ['example.test']))
  assert.ok(!is('example.test', ['api.example.test']))
  assert.ok(!is('xapi.example.test', ['api.example.test']))
})

test('a star stands for exactly one whole label at the left', () => {
  assert.ok(is('a.example.test', ['*.example.test']))
  assert.ok(!is('a.b.example.test', ['*.example.test']))
  assert.ok(!is('example.test', ['*.example.test']))
  assert.ok(!is('.example.test', ['*.example.test']))
  assert.ok(!is('a.example.test', ['a*.example.test']))
  assert.ok(!is('a.b.test', ['a.*.test']))
  assert.ok(!is('a.b.example.test', ['*.*.example.test']))
  assert.ok(!is('a.test', ['*.test']))
  assert.ok(!is('localhost', ['*']))
  assert.ok(!is('*.example.test', ['*.example.test']))
})

test('an address matches addresses only, however it is written', () => {
  assert.ok(is('10.0.0.1', [], ['10.0.0.1']))
  assert.ok(is('[::1]', [], ['::1']))
  assert.ok(is('0:0:0:0:0:0:0:1', [], ['::1']))
  assert.ok(!is('10.0.0.1', ['10.0.0.1']))
  assert.ok(!is('1.0.0.1', ['*.0.0.1']))
  assert.ok(!is('0x7f.1', ['0x7f.1'], ['127.0.0.1']))
  assert.ok(!is('127.1', ['127.1']))
})
