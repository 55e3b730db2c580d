import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import { matchesSchema } from '#platform/json-schema.ts'
import { openAnswer } from './open-answer.ts'
import { oneOf } from './shapes.ts'

const Answer = Type.Object({
  nodes: Type.Array(Type.Object({ id: Type.String(), kind: oneOf(['a', 'b']), count: Type.Optional(Type.Integer()) })),
  next: Type.Union([Type.String(), Type.Null()]),
})
const answer = (node: object, next: unknown = null) => ({ nodes: [{ id: 'x', kind: 'a', ...node }], next })

test('a word of a later release is let through, wherever it is', () => {
  assert.equal(matchesSchema(Answer, answer({ kind: 'c' })), false)
  assert.equal(matchesSchema(openAnswer(Answer), answer({ kind: 'c' })), true)
  assert.equal(openAnswer(Answer), openAnswer(Answer), 'made once')
})

test('a field of a later release is let through, also where requests are closed', () => {
  const Closed = Type.Object({ one: Type.Object({ name: Type.String() }, { additionalProperties: false }) })
  const grown = { one: { name: 'x', later: 1 } }
  assert.deepEqual([matchesSchema(Closed, grown), matchesSchema(openAnswer(Closed), grown)], [false, true])
  assert.equal(matchesSchema(openAnswer(Closed), { one: { later: 1 } }), false)
})

test('everything else of an answer is checked as before', () => {
  for (const wrong of [{ kind: 1 }, { kind: undefined }, { id: 1 }, { count: 'many' }])
    assert.equal(matchesSchema(openAnswer(Answer), answer(wrong)), false, JSON.stringify(wrong))
  assert.equal(matchesSchema(openAnswer(Answer), answer({}, 1)), false)
  assert.equal(matchesSchema(openAnswer(Answer), answer({ count: 1 }, 'more')), true)
})
