import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFrame } from './channel-frames.ts'

const envelope = { stream: 0, seq: 1, ack: 0 }
const hello = { agent_version: '1', capabilities: [], config_revision: 0, trust_revision: 0 }
const read = (frame: object) => readFrame(JSON.stringify(frame))

test('a frame that fits is read whole', () => {
  const frame = { ...envelope, type: 'hello', body: hello }
  assert.deepEqual(read(frame), { kind: 'frame', seq: 1, frame })
})

test('a type this plane does not have is named, cut to a length', () => {
  assert.deepEqual(read({ ...envelope, type: 'exec', body: {} }), { kind: 'unknown', seq: 1, type: 'exec' })
  const long = read({ ...envelope, type: 'x'.repeat(1000) })
  assert.equal(long.kind === 'unknown' && long.type.length, 64)
})

test('a frame that names a key twice is malformed: two readers could read two frames', () => {
  const text = JSON.stringify({ ...envelope, type: 'hello', body: hello })
  assert.notEqual(readFrame(text).kind, 'malformed')
  assert.equal(readFrame(text.replace('{', '{"type":"report",')).kind, 'malformed')
})

test('a frame with text that cannot be stored is malformed', () => {
  for (const unfit of ['1\u0000', '1\ud800'])
    assert.deepEqual(read({ ...envelope, type: 'hello', body: { ...hello, agent_version: unfit } }), {
      kind: 'malformed',
      why: 'it has a NUL character or half of a surrogate pair',
    })
})

test('anything else is malformed', () => {
  for (const frame of [
    { ...envelope, type: 'hello', body: { ...hello, more: 1 } },
    { ...envelope, type: 'hello', body: {} },
    { ...envelope, type: 'hello', body: hello, more: 1 },
    { ...envelope, stream: 1, type: 'hello', body: hello },
    { ...envelope, stream: '0', type: 'exec' },
    { ...envelope, seq: 1.5, type: 'exec' },
    { ...envelope, seq: '1', type: 'exec' },
    { ...envelope, seq: 2 ** 60, type: 'exec' },
    { ...envelope, type: 7 },
    { ...envelope },
    { type: 'hello' },
    [],
    [envelope],
  ]) {
    assert.equal(read(frame).kind, 'malformed', JSON.stringify(frame))
  }
  for (const text of ['', '{', 'null', '1', '"hello"', '['.repeat(60_000)]) {
    assert.equal(readFrame(text).kind, 'malformed', text.slice(0, 20))
  }
})
