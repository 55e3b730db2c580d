import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatJoinString, leadsToItself, parseJoinString, type JoinString } from './join-string.ts'

const join: JoinString = {
  url: 'https://plane.example:8443',
  domain: 'muster.local',
  rootFingerprint: 'ab'.repeat(32),
  secret: `enroll_${'x'.repeat(43)}`,
  marked: true,
}

test('a join string is read as it was written, with and without the mark and a secret', () => {
  for (const marked of [true, false]) {
    for (const secret of [join.secret, null]) {
      for (const url of ['https://plane.example:8443', 'https://[2001:db8::1]', 'https://plane.example/below']) {
        const one = { ...join, url, secret, marked }
        assert.deepEqual(parseJoinString(formatJoinString(one)), one)
      }
    }
  }
})

test('for an agent of 0.3 the mark is part of an address that leads to the same place', () => {
  const [, address = ''] = formatJoinString(join).split(',')
  assert.equal(address, 'https://plane.example:8443/marked/..')
  // As that agent puts addresses together.
  const called = new URL(address.replace(/\/+$/, '') + '/v1/enroll')
  assert.equal(called.href, 'https://plane.example:8443/v1/enroll')
  assert.match(address, /^[A-Za-z0-9:/.,_[\]-]+$/)
})

test('an address that means the machine itself is known', () => {
  for (const host of ['localhost', 'plane.localhost', '127.0.0.1', '127.1.2.3', '[::1]']) {
    assert.ok(leadsToItself(`https://${host}:8443`), host)
  }
  for (const host of ['plane.example', '10.0.0.1', '[2001:db8::1]', 'localhost.example']) {
    assert.ok(!leadsToItself(`https://${host}:8443`), host)
  }
})
