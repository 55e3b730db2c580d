import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webhookTarget, type WebhookOptions } from './webhook-target.ts'

const given = (options: Partial<WebhookOptions>) =>
  webhookTarget({
    url: 'https://alerts.example/hook?x=1',
    secretFile: '/etc/secret',
    caFile: null,
    networks: [],
    ...options,
  })

test('a name is taken as it is; none is wanted when nothing is given', () => {
  const target = given({})
  assert(typeof target === 'object' && target !== null)
  assert.equal(target.url.href, 'https://alerts.example/hook?x=1')
  assert.equal(webhookTarget({ url: null, secretFile: null, caFile: null, networks: [] }), null)
})

test('what could not work, or would lead behind the plane, is said at start', () => {
  const wrong: [Partial<WebhookOptions>, RegExp][] = [
    [{ url: 'alerts.example' }, /takes https/],
    [{ url: 'ftp://alerts.example/' }, /takes https/],
    [{ url: 'https://user:secret@alerts.example/' }, /without a user/],
    [{ url: 'https://alerts.example/#x' }, /fragment/],
    [{ url: `https://alerts.example/${'x'.repeat(3000)}` }, /takes https/],
    [{ secretFile: null }, /needs --alert-webhook-secret-file/],
    [{ url: null }, /no --alert-webhook URL/],
    [{ networks: ['10.0.0.0/99'] }, /takes a network such as/],
    [{ url: 'http://alerts.example/' }, /http: only for a loopback/],
    [{ url: 'http://127.0.0.1:9/' }, /http: only for a loopback/],
    [{ url: 'http://10.0.0.1/', networks: ['10.0.0.0/8'] }, /http: only for a loopback/],
    [{ url: 'https://169.254.169.254/latest' }, /not public/],
    [{ url: 'https://2130706433/' }, /not public/],
    [{ url: 'https://[::ffff:10.0.0.1]/' }, /not public/],
  ]
  for (const [options, says] of wrong) {
    const target = given(options)
    assert(typeof target === 'string', JSON.stringify(options))
    assert.match(target, says)
    assert.doesNotMatch(target, /secret@/)
  }
})

test('loopback without TLS is for receivers on this machine, once its network is listed', () => {
  assert.equal(typeof given({ url: 'http://127.0.0.1:9/', networks: ['127.0.0.0/8'] }), 'object')
  assert.equal(typeof given({ url: 'http://[::1]:9/', networks: ['::1/128'] }), 'object')
})
