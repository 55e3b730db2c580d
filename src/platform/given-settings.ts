// What settings are, and where each value came from: an option, else an environment variable, else a settings file, else the default.
// Every value is looked at, so that one call finds everything that is wrong. All functions here are pure.

import { listOf, optionName, keyName, Wrong, type Setting, type Settings } from './setting.ts'

export type Source =
  | { readonly from: 'option' }
  | { readonly from: 'environment'; readonly variable: string }
  | { readonly from: 'file'; readonly file: string; readonly line: number }
  | { readonly from: 'default' }

/** The settings in a file, by their names. `problems`: what of it cannot be used. */
export type FileSettings = {
  readonly file: string
  readonly entries: ReadonlyMap<string, { readonly line: number; readonly texts: readonly string[] }>
  readonly problems: readonly string[]
}

export type Given = {
  /** By the names of settings, as commander has them: a text, `true`, or a list of texts. */
  readonly options: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
  /** Null: there is none. */
  readonly file: FileSettings | null
}

export type Resolved<T> = {
  readonly value: T
  readonly source: Source
  /** As given, or the default; null: neither. */
  readonly texts: readonly string[] | null
  /** What to call it in a message: by the option, and by variable or line where it came from there. */
  readonly label: string
}

export type Values<S> = { readonly [K in keyof S]: Resolved<S[K] extends Setting<infer T> ? T : never> }

/** The values hold only where there is no problem. */
export const resolveSettings = <S extends Settings>(
  settings: S,
  given: Given,
): { readonly values: Values<S>; readonly problems: readonly string[] } => {
  const problems = [...(given.file?.problems ?? [])]
  const values: Record<string, Resolved<unknown>> = {}
  for (const [name, setting] of Object.entries(settings)) {
    const found = textsOf(name, setting, given)
    const label = labelOf(name, found.source)
    const parsed = found.texts === null ? null : parse(setting, found.texts)
    const isWrong = found.texts !== null && (parsed === null || parsed instanceof Wrong)
    if (isWrong) problems.push(problemOf(label, setting, found.texts, parsed))
    values[name] = { value: isWrong ? null : parsed, ...found, label }
  }
  return { values: values as Values<S>, problems }
}

/** A variable that a script failed to fill in must not turn a database into the default one. */
const parse = (setting: Setting<unknown>, texts: readonly string[]): unknown =>
  texts.includes('') ? new Wrong(`is empty; it takes ${setting.takes}`) : setting.parse(texts)

type Found = Pick<Resolved<unknown>, 'source' | 'texts'>

const textsOf = (name: string, setting: Setting<unknown>, { options, env, file }: Given): Found => {
  const option = optionTexts(options[name])
  if (option !== null) return { source: { from: 'option' }, texts: option }
  const { variable, standIn } = setting
  const text = variable === null ? undefined : env[variable]
  if (variable !== null && text !== undefined && !(text === '' && setting.emptyIsNone === true)) {
    const texts = setting.kind === 'list' && text !== '' ? listOf(text) : [text]
    return { source: { from: 'environment', variable }, texts }
  }
  const entry = file?.entries.get(name)
  if (file !== null && entry !== undefined) {
    return { source: { from: 'file', file: file.file, line: entry.line }, texts: entry.texts }
  }
  const other = standIn === undefined ? undefined : env[standIn]
  if (standIn !== undefined && other !== undefined)
    return { source: { from: 'environment', variable: standIn }, texts: [other] }
  return { source: { from: 'default' }, texts: defaultTexts(setting) }
}

const optionTexts = (option: unknown): readonly string[] | null => {
  if (typeof option === 'string') return [option]
  if (option === true) return ['true']
  return Array.isArray(option) ? option.map(String) : null
}

const defaultTexts = ({ kind, default: standard }: Setting<unknown>): readonly string[] | null => {
  if (kind === 'list') return listOf(standard ?? '')
  return standard === null ? null : [standard]
}

const labelOf = (name: string, source: Source): string => {
  switch (source.from) {
    case 'file':
      return `${source.file} line ${source.line}: ${keyName(name)}`
    case 'environment':
      return `${optionName(name)} (${source.variable})`
    case 'option':
    case 'default':
      return optionName(name)
  }
}

const problemOf = (
  label: string,
  { takes, isPrivate }: Setting<unknown>,
  texts: readonly string[],
  parsed: unknown,
): string => {
  if (parsed instanceof Wrong) return `${label} ${parsed.why}`
  return `${label} takes ${takes}${isPrivate === true ? '' : `, not ${texts.join(', ')}`}`
}

/** Settings that do not go together; a sentence without its full stop. */
export type Problem = { readonly problem: string }

export const isProblem = (made: unknown): made is Problem =>
  typeof made === 'object' && made !== null && 'problem' in made

/** The variables with which a process without options and without a file has the same values. */
export const asEnvironment = (
  settings: Settings,
  values: Readonly<Record<string, Resolved<unknown>>>,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(settings).flatMap(([name, { variable }]) => {
      const given = values[name]
      if (variable === null || given === undefined || given.texts === null || given.source.from === 'default') return []
      return [[variable, given.texts.join(',')]]
    }),
  )
