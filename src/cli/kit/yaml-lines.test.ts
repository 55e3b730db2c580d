import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parse } from 'yaml'
import { yamlLines } from './yaml-lines.ts'

test('what is written can be read again as the same value', () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.string(),
      fc.constantFrom('yes', 'NO', 'null', '1e3', '0x1f', '- a', 'a: b', '#', '', '~', '2030-01-01', 'a\nb', 'gpu-001'),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.string({ minLength: 1 }), tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).value
  fc.assert(
    fc.property(value, (one) => {
      assert.deepEqual(parse(yamlLines(one).join('\n'), { maxAliasCount: 0 }), one)
    }),
    { numRuns: 300 },
  )
})

test('plain words stay plain, and what is left out of an object is left out', () => {
  assert.deepEqual(
    yamlLines({ id: 'gpu-001', since: undefined, tags: ['h100'], none: {}, list: [], at: '2030-01-01' }),
    ['id: gpu-001', 'tags:', '  - h100', 'none: {}', 'list: []', 'at: "2030-01-01"'],
  )
})
