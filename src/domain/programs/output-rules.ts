// What makes a list of outputs one that can be given to nodes. Operators write only what differs from the defaults; what is
// stored is complete.

import { issuerNameRule } from '#domain/core/issuer-name.ts'
import { builtIn, keyTypes } from '#domain/core/profile.ts'
import { duration, oneOf, yesOrNo, type Rule } from '#domain/core/settings-check.ts'
import type { Output, OutputFiles } from './output.ts'

/** In one profile or vCluster, and for one node. */
export const mostOutputs = 16
/** Of one output. Each gives a name for every name of a node. */
const mostTemplates = 4

const day = 24 * 3_600_000

/** A lifetime below that leaves no time for a reload; one above it is no short-lived certificate. */
const shortestLifetimeMs = 10_000
const longestLifetimeMs = 90 * day

const outputNameShape = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/
const directoryShape = /^(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/
const accountShape = /^[a-z_][a-z0-9_-]{0,31}$/
const reloadShape = /^[a-z0-9][a-z0-9._@-]{0,62}$/
const templateShape = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*\{name\}(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/
const longestTemplate = 64

const defaultFiles: OutputFiles = {
  directory: null,
  owner: null,
  group: null,
  keyMode: 0o600,
  combined: false,
  pkcs12: false,
  reload: null,
}

const defaults: Omit<Output, 'name'> = {
  lifetimeMs: day,
  keyType: 'p256',
  usage: 'client',
  dns: [],
  addresses: false,
  files: defaultFiles,
}

const shaped = (shape: RegExp, takes: string): Rule => ({
  takes,
  fits: (value) => typeof value === 'string' && shape.test(value),
})

const orNone = ({ takes, fits }: Rule): Rule => ({
  takes: `null, or ${takes}`,
  fits: (value) => value === null || fits(value),
})

const name = shaped(outputNameShape, '1 to 32 lower-case letters, digits and dashes')

const outputRules: Readonly<Record<Exclude<keyof Output, 'files'>, Rule>> = {
  name,
  lifetimeMs: duration(shortestLifetimeMs, longestLifetimeMs),
  keyType: oneOf(keyTypes),
  usage: oneOf(['client', 'server', 'both']),
  dns: {
    takes: `at most ${mostTemplates} templates of at most ${longestTemplate} characters, each with {name} once, such as {name} or db.{name}, and without a wildcard`,
    fits: (value) => Array.isArray(value) && value.length <= mostTemplates && areOnce(value) && value.every(isTemplate),
  },
  addresses: yesOrNo,
  issuer: issuerNameRule,
}

const isTemplate = (value: unknown): boolean =>
  typeof value === 'string' && value.length <= longestTemplate && templateShape.test(value)

const areOnce = (values: readonly unknown[]): boolean => new Set(values).size === values.length

const fileRules: Readonly<Record<keyof OutputFiles, Rule>> = {
  directory: orNone(shaped(directoryShape, 'an absolute path of plain names')),
  owner: orNone(shaped(accountShape, 'the name of a user')),
  group: orNone(shaped(accountShape, 'the name of a group')),
  keyMode: {
    takes:
      'permission bits in octal that let the owner read and nobody execute, and others than the group nothing, such as "0640"',
    fits: (value) => typeof value === 'number' && (value & ~0o660) === 0 && (value & 0o400) !== 0,
  },
  combined: yesOrNo,
  pkcs12: yesOrNo,
  reload: orNone(shaped(reloadShape, 'the name of a reload in the agent.toml of the host')),
}

type ReadOutputs =
  { readonly kind: 'outputs'; readonly outputs: readonly Output[] } | { readonly kind: 'wrong'; readonly why: string }

/** From what an operator wrote, or from what is stored. */
const readOutputs = (value: unknown): ReadOutputs => {
  if (!Array.isArray(value) || value.length > mostOutputs)
    return wrong(`takes a list of at most ${mostOutputs} outputs`)
  const outputs: Output[] = []
  for (const one of value as readonly unknown[]) {
    const output = completed(one)
    const why = output === null ? 'takes outputs such as {"name":"nginx"}' : outputProblem(output)
    if (output === null || why !== null) return wrong(why ?? '')
    outputs.push(output)
  }
  const names = outputs.map((one) => one.name)
  const twice = names.find((one, at) => names.indexOf(one) !== at)
  return twice === undefined ? { kind: 'outputs', outputs } : wrong(`has ${twice} twice`)
}

const wrong = (why: string): ReadOutputs => ({ kind: 'wrong', why: `outputs ${why}` })

/** What it lacks is the default; null: no output at all. Unknown fields are found by `outputProblem`. */
const completed = (value: unknown): Output | null => {
  if (!isObject(value) || typeof value['name'] !== 'string') return null
  const files = value['files'] ?? {}
  if (!isObject(files)) return null
  const { issuer, ...rest } = value
  const signed = issuer === undefined || issuer === builtIn ? {} : { issuer }
  return { ...defaults, ...rest, ...signed, files: { ...defaultFiles, ...files, ...modeIn(files) } } as Output
}

/** Octal as people write it; a number is what an earlier answer has said. */
const modeIn = ({ keyMode }: Readonly<Record<string, unknown>>): { keyMode?: number } =>
  typeof keyMode === 'string' && /^0?[0-7]{3}$/.test(keyMode) ? { keyMode: Number.parseInt(keyMode, 8) } : {}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const outputProblem = ({ files, ...output }: Output): string | null => {
  if (!name.fits(output.name)) return `take names of ${name.takes}`
  const problem = problemIn(outputRules, output) ?? problemIn(fileRules, files, 'files.')
  if (problem !== null) return `${problem} (in ${output.name})`
  if (output.usage !== 'client' && output.dns.length === 0 && !output.addresses) {
    return `need dns or addresses for a server: a client could not tell it from another (in ${output.name})`
  }
  return null
}

const problemIn = (rules: Readonly<Record<string, Rule>>, values: object, prefix = ''): string | null => {
  for (const [key, value] of Object.entries(values) as [string, unknown][]) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined
    if (rule === undefined) return `have no ${prefix}${key.slice(0, 64)}; there are ${Object.keys(rules).join(', ')}`
    if (!rule.fits(value)) return `${prefix}${key} takes ${rule.takes}`
  }
  return null
}

/** As a setting of a profile or a vCluster. */
export const outputsRule: Rule = {
  takes: `a list of at most ${mostOutputs} outputs such as [{"name":"nginx","usage":"server","dns":["{name}"]}]`,
  fits: (value) => readOutputs(value).kind === 'outputs',
  why: (value) => whyWrong(readOutputs(value)),
  kept: (value) => keptOf(readOutputs(value)),
}

const whyWrong = (read: ReadOutputs): string => (read.kind === 'wrong' ? read.why : '')

const keptOf = (read: ReadOutputs): readonly Output[] => (read.kind === 'outputs' ? read.outputs : [])
