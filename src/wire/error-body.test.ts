import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusals, refuse, type RefusalCode } from '#domain/refusal.ts'
import { errorBody, refusalResponse, refusalText } from './error-body.ts'

test('every refusal has a sentence, a next step and a status of its own kind', () => {
  for (const code of Object.keys(refusals) as RefusalCode[]) {
    const body = errorBody(refuse(code, 'because'))
    assert.equal(body.code, code)
    assert.ok(body.message.endsWith('.') && body.next.length > 0)
    const { status } = refusalResponse(refuse(code))
    assert.ok(status >= 400 && status < 600)
  }
})

test('Retry-After is whole seconds, rounded up, and only where there is a time', () => {
  assert.equal(refusalResponse({ ...refuse('BUSY'), retryAfterMs: 1200 }).headers['retry-after'], '2')
  assert.equal('retry-after' in refusalResponse(refuse('NODE_REVOKED')).headers, false)
})

test('the text for bare sockets says how long it is and closes', () => {
  const text = refusalText(refuse('CLIENT_CERT_REQUIRED', 'ohne Zertifikat geht es nicht: ü'))
  const [head, body] = text.split('\r\n\r\n')
  assert.match(head!, /^HTTP\/1\.1 401 \r\n/)
  assert.match(head!, new RegExp(`content-length: ${Buffer.byteLength(body!)}\r\nconnection: close$`))
})
