// An answer as YAML, for `-o yaml`: the value that `-o json` prints. Texts are escaped as they are there, so that nothing a node
// has said can rewrite the terminal.

import { printableJson } from './printable.ts'

export const yamlLines = (value: unknown): string[] => {
  if (Array.isArray(value) && value.length > 0) return value.flatMap((item: unknown) => under('- ', yamlLines(item)))
  if (isObject(value)) {
    const entries = Object.entries(value).filter(([, inside]) => inside !== undefined)
    if (entries.length > 0) return entries.flatMap(([name, inside]) => entryLines(scalar(name), inside))
    return ['{}']
  }
  return [scalar(value)]
}

const entryLines = (name: string, value: unknown): string[] =>
  isNested(value) ? [`${name}:`, ...yamlLines(value).map((line) => `  ${line}`)] : [`${name}: ${scalar(value)}`]

/** The lines of an item of a list: the first behind the dash, the others below it. */
const under = (dash: string, [first = '', ...rest]: readonly string[]): string[] => [
  dash + first,
  ...rest.map((line) => `  ${line}`),
]

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isNested = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : isObject(value) && Object.values(value).some((one) => one !== undefined)

/** Words that YAML, in one of its versions, does not read as text. */
const otherThanText = /^(?:true|false|null|yes|no|on|off|y|n|nan|inf)$/i

const scalar = (value: unknown): string => {
  if (isObject(value)) return '{}'
  if (typeof value !== 'string') return printableJson(value ?? null, 0)
  return /^[A-Za-z][\w./-]*$/.test(value) && !otherThanText.test(value) ? value : printableJson(value, 0)
}
