// Settings as `set KEY=VALUE` changes them: a table of dotted keys, each with what it takes, in words and as a test.

import { durationWords } from './in-words.ts'
import { refuse, type Refusal } from './refusal.ts'
import type { RefusalCode } from './refusal-table.ts'

export type Rule = {
  readonly takes: string
  readonly fits: (value: unknown) => boolean
  /** What exactly does not fit, where that says more than `takes`. */
  readonly why?: (value: unknown) => string
  /** The complete value, where operators may write less. */
  readonly kept?: (value: unknown) => unknown
}
export type Rules = Readonly<Record<string, Rule>>

export const oneOf = (values: readonly string[]): Rule => ({
  takes: `one of ${values.join(', ')}`,
  fits: (value) => typeof value === 'string' && values.includes(value),
})

export const someOf = (values: readonly string[]): Rule => ({
  takes: `a list of one or more of ${values.join(', ')}, each once`,
  fits: (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    new Set(value).size === value.length &&
    value.every((one) => values.includes(one)),
})

export const wholeNumber = (least: number, most: number): Rule => ({
  takes: `a whole number from ${least} to ${most}`,
  fits: (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most,
})

/** Kept in milliseconds, and given to commands as 6s or 1h. */
export const duration = (leastMs: number, mostMs: number): Rule => {
  const { takes, fits } = wholeNumber(leastMs, mostMs)
  return { takes: `${shortWords(leastMs)} to ${shortWords(mostMs)} (in milliseconds ${takes})`, fits }
}

export const orNull = ({ takes, fits }: Rule): Rule => ({
  takes: `${takes}, or null`,
  fits: (value) => value === null || fits(value),
})

const shortWords = (ms: number): string =>
  ms === 0 ? '0s' : durationWords(ms).replaceAll('min', 'm').replaceAll(' ', '')

export const fraction: Rule = {
  takes: 'a number between 0 and 1',
  fits: (value) => typeof value === 'number' && value > 0 && value < 1,
}

export const yesOrNo: Rule = { takes: 'true or false', fits: (value) => typeof value === 'boolean' }

export const printable = (most: number): Rule => ({
  takes: `text of at most ${most} printable characters`,
  fits: (value) => typeof value === 'string' && value.length <= most && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(value),
})

/** It ends up in certificates as an IA5String, for anyone to fetch: plain ASCII, and no credentials. */
export const urlOrNull: Rule = {
  takes: 'an http or https URL of at most 256 characters, or null',
  fits: (value) => value === null || (typeof value === 'string' && value.length <= 256 && isPlainUrl(value)),
}

const isPlainUrl = (text: string): boolean => {
  if (!/^https?:\/\/[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

/** `code` for a value in `set` that does not fit, or that is of no setting; null: it fits. */
export const settingRefusal = (code: RefusalCode, rules: Rules, key: string, value: unknown): Refusal | null => {
  const problem = settingProblem(rules, key, value)
  if (problem === null) return null
  return { ...refuse(code, problem), field: { path: `set.${key.slice(0, 64)}`, unknown: !Object.hasOwn(rules, key) } }
}

/** What is wrong with one setting, or null. */
export const settingProblem = (rules: Rules, key: string, value: unknown): string | null => {
  const rule = Object.hasOwn(rules, key) ? rules[key] : undefined
  if (rule === undefined) return `there is no setting ${key.slice(0, 64)}; there are ${Object.keys(rules).join(', ')}`
  return rule.fits(value) ? null : (rule.why?.(value) ?? `${key} takes ${rule.takes}`)
}

/** What is stored of a value that fits. */
export const keptValue = (rules: Rules, key: string, value: unknown): unknown => rules[key]?.kept?.(value) ?? value

/** Settings as a document has them: by their names, in groups. */
export type Tree = Readonly<Record<string, unknown>>

export const settingAt = (tree: object, key: string): unknown => {
  const [first, ...rest] = key.split('.')
  const value = (tree as Tree)[first ?? '']
  return rest.length === 0 ? value : settingAt(value as object, rest.join('.'))
}

/** A copy with one setting changed. The key has been checked against the rules of this very tree. */
export const withSetting = <T extends object>(tree: T, key: string, value: unknown): T => {
  const [first, ...rest] = key.split('.')
  if (first === undefined) return tree
  const next = rest.length === 0 ? value : withSetting((tree as Tree)[first] as object, rest.join('.'), value)
  return { ...tree, [first]: next }
}

/** A document of settings, by their dotted names. What is no setting keeps the name it has, under which it is refused. */
export const settingsIn = (rules: Rules, tree: Tree, prefix = ''): Readonly<Record<string, unknown>> => {
  const keys = Object.keys(rules)
  return Object.fromEntries(
    Object.entries(tree).flatMap(([name, value]): [string, unknown][] => {
      const key = prefix + name
      // Only as deep as there are settings: the document is a caller's.
      const isGroup = isTree(value) && keys.some((known) => known.startsWith(`${key}.`))
      return isGroup ? Object.entries(settingsIn(rules, value, `${key}.`)) : [[key, value]]
    }),
  )
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

/** All settings of a value as a document, in the order of the rules. `settingsIn` leads back. */
export const settingsTree = (rules: Rules, value: object): Tree =>
  Object.keys(rules).reduce<Tree>((tree, key) => putAt(tree, key.split('.'), settingAt(value, key)), {})

const putAt = (tree: Tree, [first = '', ...rest]: readonly string[], value: unknown): Tree => {
  const below = (tree[first] ?? {}) as Tree
  return { ...tree, [first]: rest.length === 0 ? value : putAt(below, rest, value) }
}

/** `KEY: OLD -> NEW`, for the journal. */
export const changesOf = (before: object, after: object, keys: readonly string[]): readonly string[] =>
  keys
    .map((key) => [key, JSON.stringify(settingAt(before, key)), JSON.stringify(settingAt(after, key))] as const)
    .filter(([, was, is]) => was !== is)
    .map(([key, was, is]) => `${key}: ${was} -> ${is}`)
