import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstLine, lastLines } from './last-lines.ts'

test('few, short and printable', () => {
  const text = Array.from({ length: 20 }, (_, at) => `line ${at}`).join('\n')
  assert.deepEqual(lastLines(text), ['line 15', 'line 16', 'line 17', 'line 18', 'line 19'])
  assert.deepEqual(lastLines('\x1b[31mred\x07\n\n   \n'), ['[31mred'])
  assert.equal(lastLines('word '.repeat(100))[0]?.length, 200)
  assert.deepEqual(lastLines(''), [])
})

test('secrets are taken out: of a known shape, under a telling name, and the rest of a key that was cut', () => {
  const token = `enroll_${'a'.repeat(43)}`
  assert.deepEqual(lastLines(`token ${token}`), ['token [secret]'])
  assert.deepEqual(lastLines('login with hunter22', { DB_PASSWORD: 'hunter22', HOME: 'login' }), [
    'login with [secret]',
  ])
  const pem = ['MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg', '-----END PRIVATE KEY-----', 'bye'].join('\n')
  assert.deepEqual(lastLines(pem), ['[secret]', '-----END PRIVATE KEY-----', 'bye'])
  const plain = `cannot read /opt/Models/llama-3-70B/tokenizer/vocabulary of ${'0a'.repeat(32)}`
  assert.deepEqual(lastLines(plain), [plain])
})

test('a check says its first line', () => {
  assert.equal(firstLine('\n  7 of 8\nmore\n'), '7 of 8')
  assert.equal(firstLine(' \n'), null)
})
