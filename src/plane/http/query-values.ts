// A query string carries only text. Where the schema wants an integer or a boolean, its text is read as one; anything
// else stays as it came, for the schema to refuse.

import type { TSchema } from 'typebox'

export type QueryReader = (query: Readonly<Record<string, unknown>>) => Record<string, unknown>

export const queryReader = (schema: TSchema): QueryReader => {
  const properties = 'properties' in schema ? (schema.properties as Readonly<Record<string, { type?: unknown }>>) : {}
  return (query) => {
    const values: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(query)) values[name] = read(properties[name]?.type, value)
    return values
  }
}

const read = (type: unknown, value: unknown): unknown => {
  if (type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return Number(value)
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return value
}
