import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { Check } from 'typebox/value'
import { matchesSchema } from '#platform/json-schema.ts'
import { AgentFrame } from '#wire/channel/channel.ts'
import { openAnswer } from '#wire/core/open-answer.ts'
import { everyListener } from './listeners.ts'

test('every schema of a call takes what typebox takes, and refuses what it refuses', () => {
  const counts = { taken: 0, refused: 0 }
  for (const schema of schemas) {
    for (const value of fc.sample(valueOf(schema), valuesOfEach)) {
      const expected = Check(schema, value)
      assert.equal(matchesSchema(schema, value), expected, `${JSON.stringify(value)} by ${JSON.stringify(schema)}`)
      counts[expected ? 'taken' : 'refused']++
    }
  }
  const least = schemas.length / 2
  assert.ok(counts.taken > least && counts.refused > least, JSON.stringify({ ...counts, schemas: schemas.length }))
})

const valuesOfEach = 8

const declared = everyListener.flatMap(({ endpoints }) =>
  endpoints.flatMap(({ params, query, body, answer }) => [params, query, body, answer]),
)
const schemas = [...new Set([AgentFrame, ...declared])]
  .filter((schema) => schema !== undefined)
  .flatMap((schema: TSchema) => [schema, openAnswer(schema)])

/** Values that nearly fit: at each place a few times one that does not. */
const valueOf = (schema: object): fc.Arbitrary<unknown> =>
  fc.oneof(
    { arbitrary: fittingValue(schema as Wanted), weight: 60 },
    { arbitrary: fc.constantFrom(...strange), weight: 1 },
  )

const strange = [
  null,
  undefined,
  true,
  0,
  -1,
  1.5,
  2 ** 53,
  Number.NaN,
  '',
  'a',
  'x'.repeat(300),
  [],
  [1],
  {},
  { a: 1 },
]

type Wanted = {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly object[]
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: object
  readonly minItems?: number
  readonly properties?: Readonly<Record<string, object>>
  readonly patternProperties?: Readonly<Record<string, object>>
  readonly required?: readonly string[]
}

const fittingValue = (schema: Wanted): fc.Arbitrary<unknown> => {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueOf))
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if ('const' in schema) return fc.constant(schema.const)
  switch (schema.type) {
    case 'object':
      return objectOf(schema)
    case 'array': {
      const minLength = schema.minItems ?? 0
      return fc.array(valueOf(schema.items ?? {}), { minLength, maxLength: minLength + 2 })
    }
    case 'string':
      return textOf(schema)
    case 'integer':
    case 'number': {
      const { minimum = -5, maximum = 2 ** 40 } = schema
      return fc.oneof(
        fc.integer({ min: Math.ceil(minimum), max: Math.floor(maximum) }),
        fc.constantFrom(minimum, maximum, maximum + 1, 0.5),
      )
    }
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.constantFrom(...strange)
  }
}

const objectOf = ({ properties = {}, patternProperties = {}, required = [] }: Wanted): fc.Arbitrary<unknown> => {
  const fields = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, valueOf(one)]))
  const others = Object.entries(patternProperties).map(([pattern, one]) =>
    fc.dictionary(textOf({ pattern }), valueOf(one), { maxKeys: 2 }),
  )
  const surplus = { arbitrary: fc.constantFrom({ unknown: 1 }, { '': null }), weight: 1 }
  return fc
    .tuple(
      fc.record(fields, { requiredKeys: Object.keys(fields).filter((name) => required.includes(name)) }),
      fc.oneof({ arbitrary: fc.constant({}), weight: 30 }, surplus),
      ...others,
    )
    .map((parts) => Object.assign({}, ...parts) as object)
}

const samples = [
  '',
  'a',
  'gpu-001',
  '0',
  '1.5',
  'ab'.repeat(32),
  'sha256:' + 'ab'.repeat(32),
  '2026-11-18T00:00:00.000Z',
]

const textOf = ({ pattern, minLength = 0, maxLength = 40 }: Wanted): fc.Arbitrary<string> => {
  const free = fc.oneof(
    fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 40) }),
    fc.constantFrom(...samples),
  )
  if (pattern === undefined) return free
  try {
    return fc.oneof({ arbitrary: fc.stringMatching(new RegExp(pattern)), weight: 9 }, free)
  } catch {
    // Fast-check makes no text for a pattern that looks ahead.
    return free
  }
}
