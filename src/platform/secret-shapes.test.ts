import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redactSecrets } from './secret-shapes.ts'

const random = 'Ab-_'.repeat(10) + 'xyz'
const body = `MC4CAQAwBQYDK2VwBCIEI${'Q+/'.repeat(14)}w==`
const pem = `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`

test('every token and key of Muster is taken out, and what stands around it stays', () => {
  for (const prefix of ['enroll', 'recover', 'repair', 'muster_key']) {
    assert.equal(redactSecrets(`(${prefix}_${random}), twice ${prefix}_${random}.`), '([secret]), twice [secret].')
    assert.equal(redactSecrets(`${prefix}_${random.slice(1)}`), `${prefix}_${random.slice(1)}`)
  }
})

test('tokens of Vault are taken out', () => {
  for (const kind of ['hvs', 'hvb', 'hvr']) {
    assert.equal(redactSecrets(`"${kind}.CAESI${random}" (${kind}.${random})`), '"[secret]" ([secret])')
    assert.equal(redactSecrets(`${kind}.short and my${kind}.${random}`), `${kind}.short and my${kind}.${random}`)
  }
})

test('a private key in PEM is taken out: whole, on one line, in JSON, encrypted, and cut off', () => {
  assert.equal(redactSecrets(`a ${pem}b`), 'a [secret]\nb')
  assert.equal(redactSecrets(`a ${pem.replaceAll('\n', ' ')}b`), 'a [secret] b')
  const encrypted = pem.replace('\n', '\nProc-Type: 4,ENCRYPTED\n\n').replaceAll('PRIVATE', 'RSA PRIVATE')
  assert.equal(redactSecrets(encrypted), '[secret]\n')
  for (let length = 30; length < pem.length; length++) {
    const left = redactSecrets(`${pem.slice(0, length)}… and so on`)
    assert.ok(!left.includes(body.slice(0, 8)) && left.endsWith('… and so on'), left)
  }
})

test('JSON stays JSON, also where a key is split over two values', () => {
  const values = { a: pem, b: `enroll_${random}`, c: pem.slice(0, 60), d: '-----END PRIVATE KEY-----' }
  assert.deepEqual(JSON.parse(redactSecrets(JSON.stringify(values))), {
    a: '[secret]\n',
    b: '[secret]',
    c: '[secret]',
    d: '-----END PRIVATE KEY-----',
  })
})

test('certificates, public keys, fingerprints and ordinary words stay', () => {
  const harmless = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\nSHA256:abc enroll_node recover_by'
  assert.equal(redactSecrets(harmless), harmless)
})

test('whatever is sent, it takes no longer than its length', () => {
  const begin = '-----BEGIN PRIVATE KEY-----'
  const hostile = [
    begin,
    `${begin}A`,
    '-----BEGIN ',
    `${begin}-`,
    `${begin}- a`,
    '- '.repeat(3),
    'enroll_',
    'enroll_a-',
    'postgres://a:',
    'postgres://:x@',
  ]
  for (const part of hostile) {
    const text = begin + part.repeat(1_000_000 / part.length)
    // Time of the processor: what else the machine does is not the text's fault.
    const before = process.threadCpuUsage()
    redactSecrets(text)
    const { user, system } = process.threadCpuUsage(before)
    assert.ok(user + system < 2_000_000, part)
  }
})

test('the password in the address of a database is taken out, whatever it is made of', () => {
  for (const password of ['hunter2', 'p%40ss', 'with@sign', 'a/b', 'x'.repeat(300)]) {
    const line = JSON.stringify({ msg: `no option --stor=postgres://muster:${password}@db.example:5432/fleet` })
    const clean = redactSecrets(line)
    assert.ok(!clean.includes(password), password)
    assert.match((JSON.parse(clean) as { msg: string }).msg, /postgres:\/\/muster:\[secret\]@db\.example:5432\/fleet$/)
  }
  assert.equal(redactSecrets('postgres://db.example:5432/fleet'), 'postgres://db.example:5432/fleet')
  const asWeWriteIt = 'put postgres://USER:PASSWORD@HOST:PORT/DATABASE into a file'
  assert.equal(
    redactSecrets(asWeWriteIt),
    asWeWriteIt,
    'whoever is told how to write it has to see where the password goes',
  )
})
