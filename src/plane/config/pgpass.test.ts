import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passwordIn } from './pgpass.ts'

const asked = { host: 'db1', port: 5432, database: 'fleet', user: 'muster' }

test('the first line that fits gives the password; a star fits anything', () => {
  const file = '# db1:5432:fleet:muster:a comment\ndb1:5433:*:*:other port\ndb1:*:*:muster:first\n*:*:*:*:last\n'
  assert.equal(passwordIn(file, asked), 'first')
  assert.equal(passwordIn(file, { ...asked, host: 'db2' }), 'last')
  assert.equal(passwordIn('db1:5432:fleet:root:x', asked), null)
})

test('a colon and a backslash are written after a backslash, and a password may have colons', () => {
  assert.equal(passwordIn('db1:5432:fleet:muster:a\\:b\\\\c:d', asked), 'a:b\\c:d')
  assert.equal(passwordIn('db\\:1:5432:fleet:muster:x', { ...asked, host: 'db:1' }), 'x')
  assert.equal(passwordIn('\\*:5432:fleet:muster:x', { ...asked, host: '*' }), 'x')
})

test('the usual folder of sockets is called localhost, another by its name', () => {
  assert.equal(passwordIn('localhost:*:*:*:here', { ...asked, host: '/var/run/postgresql' }), 'here')
  assert.equal(passwordIn('/srv/pg:*:*:*:there', { ...asked, host: '/srv/pg' }), 'there')
})

test('a truncated line matches no network', () => {
  for (const line of ['', 'db1', 'db1:5432:fleet:muster', '*:*:*:*']) assert.equal(passwordIn(line, asked), null)
})
