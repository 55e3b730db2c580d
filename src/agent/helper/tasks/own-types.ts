// Types of tasks that a host has of its own: an executable, and a manifest TYPE.toml in a folder of root's that says what it takes. The
// program gets its parameters as JSON on its standard input. Both, and every folder above them, are looked at anew at each start.

import * as path from 'node:path'
import {
  absolutePath,
  directory,
  oneWordOf,
  readToml,
  userName,
  wholeBetween,
  word,
  yesOrNo,
  type Section,
} from '#platform/toml-section.ts'
import { faultOfPath, readTrustedFile } from '#platform/trusted-path.ts'
import type { PreparedTask, TaskHost } from './prepared-task.ts'
import { prepareProgram } from './run-task.ts'
import { limitsIn, type ProgramLimits } from './tasks-toml.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

export type OwnType = ProgramLimits & {
  readonly executable: string
  readonly user: string
  readonly workingDirectory: string
  /** Whether it may be begun again where it was interrupted. */
  readonly repeatable: boolean
  readonly parameters: ReadonlyMap<string, OwnParameter>
}

/** `most`: of a string and of each of `strings` its length, of an integer its value. */
type OwnParameter = {
  readonly type: 'string' | 'strings' | 'integer' | 'boolean'
  readonly isRequired: boolean
  readonly oneOf: readonly string[] | null
  readonly least: number
  readonly most: number
}

const longestManifest = 16 * 1024
const parameterName = /^[a-z][a-z0-9_-]{0,31}$/
const mostWords = 64

export const parseManifest = (text: string): OwnType | { readonly why: string } => {
  const read = readToml(text, (section) => {
    const manifest: OwnType = {
      executable: section.required('executable', absolutePath),
      user: section.optional('user', userName) ?? 'root',
      workingDirectory: section.optional('working_directory', directory) ?? '/',
      repeatable: section.optional('repeatable', yesOrNo) ?? false,
      ...limitsIn(section),
      parameters: section.named('parameters', parameterName, parameterOf),
    }
    section.end()
    return manifest
  })
  return read.kind === 'invalid' ? { why: read.why } : read.value
}

const parameterOf = (section: Section): OwnParameter => {
  const type = section.required('type', oneWordOf(['string', 'strings', 'integer', 'boolean']))
  const parameter = {
    type,
    isRequired: section.optional('required', yesOrNo) ?? false,
    oneOf: section.list('one_of', word),
    least: section.optional('least', wholeBetween(0, Number.MAX_SAFE_INTEGER)) ?? 0,
    most: section.optional('most', wholeBetween(0, Number.MAX_SAFE_INTEGER)) ?? (type === 'integer' ? 2 ** 31 : 4096),
  }
  section.end()
  return parameter
}

/** Null where they fit. */
export const faultOfParameters = (
  declared: OwnType['parameters'],
  given: Readonly<Record<string, unknown>>,
): string | null => {
  for (const name of Object.keys(given)) if (!declared.has(name)) return `${name} is not a parameter of this type`
  for (const [name, parameter] of declared) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === undefined && parameter.isRequired) return `${name} is missing`
    if (value !== undefined && !fits(parameter, value)) return misfit(name, parameter, value)
  }
  return null
}

/** What it is, and what it may be; the value itself may be secret. */
const misfit = (name: string, { type, oneOf, least, most }: OwnParameter, value: unknown): string => {
  const is = Array.isArray(value) ? 'a list' : (kindsOfValues[typeof value] ?? 'an object')
  if (oneOf !== null) return `${name} takes ${type === 'strings' ? 'a list of these' : 'one of'}: ${oneOf.join(', ')}`
  switch (type) {
    case 'integer':
      return `${name} is ${is}; declared: an integer from ${least} to ${most} (--param ${name}:=${least})`
    case 'boolean':
      return `${name} is ${is}; declared: true or false (--param ${name}:=true)`
    case 'string':
      return `${name} is ${is}; declared: a text of ${least} to ${most} characters`
    case 'strings':
      return `${name} is ${is}; declared: a list of at most ${mostWords} texts of ${least} to ${most} characters (--param '${name}:=["a"]')`
  }
}

const kindsOfValues: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
}

const fits = ({ type, oneOf, least, most }: OwnParameter, value: unknown): boolean => {
  const isString = (one: unknown): boolean =>
    typeof one === 'string' && one.length >= least && one.length <= most && (oneOf === null || oneOf.includes(one))
  switch (type) {
    case 'string':
      return isString(value)
    case 'strings':
      return Array.isArray(value) && value.length <= mostWords && value.every(isString)
    case 'integer':
      return typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
    case 'boolean':
      return typeof value === 'boolean'
  }
}

export const prepareOwnType = (
  host: TaskHost,
  {
    id,
    type,
    parameters,
  }: { readonly id: string; readonly type: string; readonly parameters: Readonly<Record<string, unknown>> },
): PreparedTask | TaskRefusal => {
  const { trust, tasks } = host
  const manifest = readOwnType(host, type)
  if ('kind' in manifest) return manifest
  const fault = faultOfPath(tasks.typesFolder, trust, { kind: 'folder', links: 'followed' })
  if (fault !== null) return refuseTask('PATH_UNSAFE', fault)
  const wrong = faultOfParameters(manifest.parameters, parameters)
  if (wrong !== null) return refuseTask('PARAMETERS_INVALID', wrong)
  return prepareProgram(host, id, { ...manifest, name: type, words: [], input: JSON.stringify(parameters) })
}

export const readOwnType = (
  { tasks, trust }: Pick<TaskHost, 'tasks' | 'trust'>,
  type: string,
): OwnType | TaskRefusal => {
  const file = path.join(tasks.typesFolder, `${type}.toml`)
  const read = readTrustedFile(file, trust, longestManifest)
  if ('fault' in read) return refuseTask('PATH_UNSAFE', `${type} has no manifest that can be believed: ${read.fault}`)
  const manifest = parseManifest(read.text)
  return 'why' in manifest ? refuseTask('NOT_DONE', `${file}: ${manifest.why}`) : manifest
}
