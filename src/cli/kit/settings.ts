// KEY=VALUE on the command line, read as the schema says, and shown in the same words.

import { closestTo } from '#platform/closest-word.ts'
import { parseDuration, formatDuration } from '#wire/core/duration.ts'
import { type Failure, usageFailure } from './failure.ts'

/** As much of a JSON schema as settings use. */
type Schema = {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly items?: Schema
}

export const parseSettings = (schema: Schema, pairs: readonly string[]): Record<string, unknown> => {
  const settings: Record<string, unknown> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw usageFailure(`${pair} is not a setting.`, 'Write KEY=VALUE')
    const key = pair.slice(0, at)
    const kind = schemaAt(schema, key.split('.'))
    if (kind === null)
      throw unknownSetting(
        key,
        settingKeys(schema).filter((one) => one !== ownName),
      )
    if (Object.hasOwn(settings, key)) throw usageFailure(`${key} is given twice.`)
    settings[key] = parseValue(key, kind, pair.slice(at + 1))
  }
  return settings
}

/** A profile and a domain keep theirs. */
const ownName = 'name'

/** A key without its group is meant by its last word, where one key has it. */
const unknownSetting = (key: string, known: readonly string[]): Failure => {
  const [sole, ...others] = known.filter((one) => one.toLowerCase().endsWith(`.${key.toLowerCase()}`))
  const meant = sole !== undefined && others.length === 0 ? sole : closestTo(key, known)
  return usageFailure(
    `There is no setting ${key}.`,
    meant === null
      ? `These there are: ${known.join(', ')}`
      : `Did you mean ${meant}? All there are: ${known.join(', ')}`,
  )
}

/** Every key that can be set, with dots. */
export const settingKeys = (schema: Schema): string[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, part]) =>
    part.properties === undefined ? [name] : settingKeys(part).map((key) => `${name}.${key}`),
  )

/** A value in the words `parseSettings` takes, one line a key. */
export const settingLines = (value: object, prefix = ''): [name: string, value: string][] =>
  Object.entries(value).flatMap(([name, part]: [string, unknown]): [string, string][] =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? settingLines(part, `${prefix}${name}.`)
      : [[prefix + name, showValue(name, part)]],
  )

/** For the person at the terminal: settings that are taken and shown, and do nothing. Null: all of them do something. */
export const noEffectNote = (names: readonly string[] | undefined): string | null => {
  if (names === undefined || names.length === 0) return null
  const them = names.length === 1 ? 'it' : 'them'
  return `no effect yet: ${names.join(', ')} (nothing reads ${them}; do not rely on ${them})`
}

/** Of these settings, with dots, those that say something in `settings`: after a change the others need no remark. */
export const thatAreSet = (names: readonly string[] | undefined, settings: object): readonly string[] =>
  (names ?? []).filter((name) => {
    const value = name
      .split('.')
      .reduce<unknown>((at, part) => (at as Record<string, unknown> | null)?.[part], settings)
    return Array.isArray(value) ? value.length > 0 : Boolean(value)
  })

const schemaAt = (schema: Schema, path: readonly string[]): Schema | null => {
  const [name, ...rest] = path
  if (name === undefined) return schema.properties === undefined ? schema : null
  const properties = schema.properties ?? {}
  const next = Object.hasOwn(properties, name) ? properties[name] : undefined
  return next === undefined ? null : schemaAt(next, rest)
}

const parseValue = (key: string, kind: Schema, text: string): unknown => {
  const nullable = kind.anyOf?.some((one) => one.type === 'null') === true
  if (nullable && (text === 'none' || text === 'null')) return null
  if (kind.anyOf?.some((one) => one.type === 'object') === true) return jsonValue(key, text)
  const sole = kind.anyOf?.filter((one) => one.type !== 'null') ?? []
  if (nullable && sole.length === 1 && sole[0] !== undefined) return parseValue(key, sole[0], text)
  if (kind.items?.type === 'object') return text === '' ? [] : jsonValue(key, text)
  switch (kind.type) {
    case 'integer':
      return key.endsWith('Ms') ? milliseconds(key, text) : number(key, text, /^\d{1,15}$/)
    case 'number':
      return fraction(key, text)
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw usageFailure(`${key} is true or false, not ${text}.`)
      return text === 'true'
    case 'array':
      return text === '' ? [] : text.split(',')
    default:
      return text
  }
}

const jsonValue = (key: string, text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw usageFailure(`${key} is JSON, or none.`, `Quote it for the shell: '${key}={...}'`)
  }
}

const milliseconds = (key: string, text: string): number => {
  const ms = parseDuration(text) ?? (/^\d{1,15}$/.test(text) ? Number(text) : null)
  if (ms === null) throw usageFailure(`${key} is a duration, not ${text}.`, 'Write a number and a unit: 30m, 24h, 3d')
  return ms
}

const number = (key: string, text: string, shape: RegExp): number => {
  if (!shape.test(text)) throw usageFailure(`${key} is a number, not ${text}.`)
  return Number(text)
}

/** Fractions may be written as such: 2/3. */
const fraction = (key: string, text: string): number => {
  const [, above, below] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? []
  if (above !== undefined && below !== undefined && Number(below) > 0) return Number(above) / Number(below)
  return number(key, text, /^\d{1,6}(\.\d{1,15})?$/)
}

const showValue = (name: string, value: unknown): string => {
  if (value === null) return 'none'
  if (Array.isArray(value))
    return value.some((one) => typeof one === 'object') ? JSON.stringify(value, modesInOctal) : value.join(',')
  if (typeof value === 'string') return value
  if (typeof value !== 'number') return JSON.stringify(value)
  if (name.endsWith('Ms')) return formatDuration(value)
  return knownFractions.find((text) => Math.abs(fraction(name, text) - value) < 1e-12) ?? String(value)
}

const modesInOctal = (key: string, value: unknown): unknown =>
  key === 'keyMode' && typeof value === 'number' ? `0${value.toString(8)}` : value

const knownFractions = ['1/3', '2/3', '1/2']
