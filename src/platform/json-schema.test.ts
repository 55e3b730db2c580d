import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type, type TSchema } from 'typebox'
import { matchesSchema, recordOf } from './json-schema.ts'

test('texts are measured in characters of Unicode, and not in parts of them', () => {
  const two = Type.String({ minLength: 2, maxLength: 2 })
  for (const text of ['ab', '\u{1F600}b', '\u{1F600}\u{1F600}', 'e\u0301']) assert.ok(matchesSchema(two, text), text)
  for (const text of ['', 'a', '\u{1F600}', 'abc', '\u{1F600}\u{1F600}c']) assert.ok(!matchesSchema(two, text), text)
})

test('what every object inherits is no field of it', () => {
  const schema = Type.Object({ toString: Type.Optional(Type.String()) }, { additionalProperties: false })
  assert.ok(matchesSchema(schema, {}))
  assert.ok(!matchesSchema(Type.Object({ valueOf: Type.Unknown() }), {}))
  assert.ok(!matchesSchema(schema, JSON.parse('{"__proto__": 1}')))
  assert.ok(!matchesSchema(schema, { toString: 1 }))
})

test('a keyword that is not known is an error, and lets nothing through', () => {
  const unknown = [{ not: {} }, { type: 'bigint' }, { uniqueItems: true }, { format: 'date' }] as TSchema[]
  for (const schema of unknown) assert.throws(() => matchesSchema(schema, [1, 1]), /not checked by the keyword/)
  assert.throws(() => matchesSchema(Type.Object({ a: Type.Array({ oneOf: [] }) }), { a: [1] }), /oneOf/)
})

test('a record is what typebox makes of one, and takes no other names', () => {
  const names = Type.String({ pattern: '^[a-z]+$' })
  const closed = { additionalProperties: false }
  assert.deepEqual(recordOf(names, Type.Integer()), { ...Type.Record(names, Type.Integer()), ...closed })
  assert.deepEqual(recordOf(Type.String(), Type.Integer()), {
    ...Type.Record(Type.String(), Type.Integer()),
    ...closed,
  })
})

test('a record refuses a name that misses its pattern, is longer than it may be, or has a second line', () => {
  const byPattern = recordOf(Type.String({ pattern: '^[a-z]+$' }), Type.Integer())
  const byLength = recordOf(Type.String({ maxLength: 3 }), Type.Integer())
  const any = recordOf(Type.String(), Type.Integer())
  assert.ok(
    matchesSchema(byPattern, { abc: 1 }) && matchesSchema(byLength, { abc: 1 }) && matchesSchema(any, { '': 1 }),
  )
  for (const name of ['ABC', 'a b', '', '__proto__', 'a\nb'])
    assert.ok(!matchesSchema(byPattern, JSON.parse(`{${JSON.stringify(name)}: 1}`)), name)
  assert.ok(!matchesSchema(byLength, { abcd: 1 }))
  assert.ok(matchesSchema(byLength, { '\u{1F600}\u{1F600}\u{1F600}': 1 }))
  assert.ok(!matchesSchema(any, { 'a\nb': 'not even a number' }))
  const open = recordOf(Type.String({ pattern: '^[a-z]+$' }), Type.Integer(), { additionalProperties: true })
  assert.ok(matchesSchema(open, { ABC: 1 }))
})
