// JSON Schema as far as Muster uses it: whether a value is what a schema says, and schemas of objects with any names. Typebox has both, but
// loads 280 kB of script for them, which was a fifth of the start of a command, and compiles every pattern again at each check.

import type { Static, TObjectOptions, TRecord, TSchema, TString } from 'typebox'

type Schema = {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly description?: string
  readonly deprecated?: boolean
}

/**
 * Of any names of one line, or of those that `names` takes: its pattern, or its longest length. Any other name is refused, unless
 * `options` say otherwise: JSON Schema takes a name that misses the pattern with whatever value. `Type.Record` loads most of typebox.
 */
export const recordOf = <V extends TSchema>(names: TString, value: V, options: TObjectOptions = {}) =>
  ({
    type: 'object',
    patternProperties: { [patternOf(names)]: value },
    additionalProperties: false,
    ...options,
  }) as unknown as TRecord<'^.*$', V>

const patternOf = (names: TString): string => {
  const { pattern, maxLength } = names as { readonly pattern?: string; readonly maxLength?: number }
  if (pattern !== undefined) return pattern
  return maxLength === undefined ? '^.*$' : `^.{0,${maxLength}}$`
}

export const matchesSchema = <const T extends TSchema>(schema: T, value: unknown): value is Static<T> =>
  matches(schema, value)

const matches = (schema: Schema, value: unknown): boolean => {
  for (const keyword of Object.keys(schema)) if (!holds(keyword as keyof Schema, schema, value)) return false
  return true
}

/** A keyword says something about values of one kind only: a pattern holds for every number. */
const holds = (keyword: keyof Schema, schema: Schema, value: unknown): boolean => {
  switch (keyword) {
    case 'type':
      return isOfType(schema.type ?? '', value)
    case 'const':
      return value === schema.const
    case 'enum':
      return (schema.enum ?? []).includes(value)
    case 'anyOf':
      return (schema.anyOf ?? []).some((one) => matches(one, value))
    case 'minLength':
      return typeof value !== 'string' || !isShorter(value, schema.minLength ?? 0)
    case 'maxLength':
      return typeof value !== 'string' || isShorter(value, (schema.maxLength ?? 0) + 1)
    case 'pattern':
      return typeof value !== 'string' || regExp(schema.pattern ?? '').test(value)
    case 'minimum':
      return typeof value !== 'number' || value >= (schema.minimum ?? 0)
    case 'maximum':
      return typeof value !== 'number' || value <= (schema.maximum ?? 0)
    case 'exclusiveMinimum':
      return typeof value !== 'number' || value > (schema.exclusiveMinimum ?? 0)
    case 'exclusiveMaximum':
      return typeof value !== 'number' || value < (schema.exclusiveMaximum ?? 0)
    case 'items':
      return !Array.isArray(value) || value.every((item) => matches(schema.items ?? {}, item))
    case 'minItems':
      return !Array.isArray(value) || value.length >= (schema.minItems ?? 0)
    case 'maxItems':
      return !Array.isArray(value) || value.length <= (schema.maxItems ?? 0)
    case 'properties':
    case 'patternProperties':
    case 'additionalProperties':
    case 'required':
    case 'minProperties':
    case 'maxProperties':
      return !isObject(value) || holdsForObject(keyword, schema, value)
    case 'description':
    case 'deprecated':
      return true
    default:
      return unknownKeyword(keyword)
  }
}

type Fields = Readonly<Record<string, unknown>>

const holdsForObject = (keyword: keyof Schema, schema: Schema, value: Fields): boolean => {
  const { properties = {}, patternProperties = {}, additionalProperties: others = true, required = [] } = schema
  switch (keyword) {
    case 'properties':
      return Object.entries(properties).every(
        ([name, one]) =>
          // As TypeScript has it: undefined is as good as left out.
          (value[name] === undefined && !required.includes(name)) ||
          !Object.hasOwn(value, name) ||
          matches(one, value[name]),
      )
    case 'patternProperties':
      return Object.entries(patternProperties).every(([pattern, one]) =>
        Object.keys(value).every((name) => !regExp(pattern).test(name) || matches(one, value[name])),
      )
    case 'additionalProperties':
      return Object.keys(value).every((name) => {
        const isNamed =
          Object.hasOwn(properties, name) ||
          Object.keys(patternProperties).some((pattern) => regExp(pattern).test(name))
        return isNamed || (typeof others === 'boolean' ? others : matches(others, value[name]))
      })
    case 'required':
      return required.every((name) => Object.hasOwn(value, name))
    case 'minProperties':
      return Object.keys(value).length >= (schema.minProperties ?? 0)
    case 'maxProperties':
      return Object.keys(value).length <= (schema.maxProperties ?? 0)
    default:
      return unknownKeyword(keyword)
  }
}

/** A schema that is not understood must not let everything through. */
const unknownKeyword = (keyword: string): never => {
  throw new Error(`values are not checked by the keyword ${keyword} of JSON Schema`)
}

const isOfType = (type: string, value: unknown): boolean => {
  switch (type) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    case 'null':
      return value === null
    case 'string':
    case 'boolean':
      return typeof value === type
    default:
      return unknownKeyword(`type: ${type}`)
  }
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Characters of Unicode are counted, as JSON Schema says. A text has as many units of UTF-16 or more, and at most twice as many. */
const isShorter = (text: string, length: number): boolean => {
  if (text.length < length) return true
  return text.length < 2 * length && [...text].length < length
}

/** As many as schemas have. */
const compiled = new Map<string, RegExp>()

const regExp = (pattern: string): RegExp => {
  const known = compiled.get(pattern)
  if (known !== undefined) return known
  const made = new RegExp(pattern, 'u')
  compiled.set(pattern, made)
  return made
}
