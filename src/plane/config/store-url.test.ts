import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { listedHosts, parseStoreUrl, type StoreUrl } from './store-url.ts'

const blank: StoreUrl = { hosts: [], user: null, password: null, database: null, sslmode: null, sslrootcert: null }

test('an address names hosts, user, password, database and TLS', () => {
  assert.deepEqual(
    parseStoreUrl(
      'postgres://muster:p%40ss@db1:5432,db2:6432,[::1]/fleet?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem',
    ),
    {
      hosts: [
        { host: 'db1', port: 5432 },
        { host: 'db2', port: 6432 },
        { host: '::1', port: null },
      ],
      user: 'muster',
      password: 'p@ss',
      database: 'fleet',
      sslmode: 'verify-full',
      sslrootcert: '/etc/ca.pem',
    },
  )
  assert.deepEqual(parseStoreUrl('postgresql://'), blank)
})

test('a folder with a socket is written into the address, or given as a parameter', () => {
  const socket = [{ host: '/run/postgresql', port: null }]
  assert.deepEqual(parseStoreUrl('postgres://%2Frun%2Fpostgresql/fleet'), {
    ...blank,
    hosts: socket,
    database: 'fleet',
  })
  assert.deepEqual(parseStoreUrl('postgres:///fleet?host=/run/postgresql&port=5433'), {
    ...blank,
    hosts: [{ host: '/run/postgresql', port: 5433 }],
    database: 'fleet',
  })
})

test('hosts are listed with one port for all or one for each', () => {
  assert.deepEqual(listedHosts('a,b', '5433'), [
    { host: 'a', port: 5433 },
    { host: 'b', port: 5433 },
  ])
  assert.deepEqual(listedHosts('a,/run/b', '1,'), [
    { host: 'a', port: 1 },
    { host: '/run/b', port: null },
  ])
  assert.equal(typeof listedHosts('a,b,c', '1,2'), 'string')
})

test('a standby is never asked for', () => {
  assert.equal(typeof parseStoreUrl('postgres://h/d?target_session_attrs=any'), 'string')
  assert.equal(typeof parseStoreUrl('postgres://h/d?target_session_attrs=read-write'), 'object')
})

const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((one) => !one.includes('\0'))
const plain = { noNullPrototype: true } as const
const host = fc.record(
  {
    host: fc.oneof(
      fc.stringMatching(/^[a-z][a-z0-9.-]{0,20}$/),
      fc.ipV4(),
      fc.ipV6().filter((one) => !one.includes('.')),
      text.map((one) => `/${one}`),
    ),
    port: fc.option(fc.integer({ min: 1, max: 65_535 })),
  },
  plain,
)
const url = fc.record(
  {
    hosts: fc.array(host, { minLength: 1, maxLength: 4 }),
    user: text,
    password: text,
    database: fc.option(text),
    sslmode: fc.option(fc.constantFrom('verify-full', 'disable')),
    sslrootcert: fc.option(text),
  },
  plain,
)

const written = (parts: StoreUrl): string => {
  const hosts = parts.hosts.map(({ host, port }) => {
    const name = host.includes(':') && !host.startsWith('/') ? `[${host}]` : encodeURIComponent(host)
    return port === null ? name : `${name}:${port}`
  })
  const query = (['sslmode', 'sslrootcert'] as const).flatMap((name) => {
    const value = parts[name]
    return value === null ? [] : [`${name}=${encodeURIComponent(value)}`]
  })
  const login = `${encodeURIComponent(parts.user ?? '')}:${encodeURIComponent(parts.password ?? '')}`
  const database = parts.database === null ? '' : `/${encodeURIComponent(parts.database)}`
  return `postgres://${login}@${hosts.join(',')}${database}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

test('whatever is written into an address is read out of it', () => {
  fc.assert(fc.property(url, (parts) => assert.deepEqual(parseStoreUrl(written(parts)), parts)))
})

test('an address with a mistake anywhere is refused without a word of it, least of all its password', () => {
  const password = fc.stringMatching(/^[A-Z]{12,16}$/)
  const damage = fc.record({
    at: fc.nat(),
    put: fc.constantFrom('', '@', '/', ':', '?', '&', '%', '=', '#', ' ', ',', '[', '%zz'),
  })
  fc.assert(
    fc.property(url, password, fc.array(damage, { minLength: 1, maxLength: 4 }), (parts, secret, damages) => {
      let line = written({ ...parts, password: secret })
      for (const { at, put } of damages) {
        const place = at % (line.length + 1)
        line = line.slice(0, place) + put + line.slice(place + 1)
      }
      const read = parseStoreUrl(line)
      if (typeof read !== 'string') return
      for (let at = 0; at + 6 <= secret.length; at++) assert.ok(!read.includes(secret.slice(at, at + 6)), read)
    }),
  )
})
