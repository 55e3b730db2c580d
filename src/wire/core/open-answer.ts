// Answers as a caller checks them. A plane of a later release may have fields that this one does not know, and words for a condition
// or a kind of alert: a command that refused the whole answer for one of them could not list nodes during an upgrade.

import type { TSchema } from 'typebox'

const opened = new WeakMap<TSchema, TSchema>()

/** The schema with every list of known words opened to any text, and every object to further fields. The rest stays as strict as it is. */
export const openAnswer = (schema: TSchema): TSchema => {
  const known = opened.get(schema)
  if (known !== undefined) return known
  const made = withoutWords(schema) as TSchema
  opened.set(schema, made)
  return made
}

const withoutWords = (part: unknown): unknown => {
  if (Array.isArray(part)) return part.map(withoutWords)
  if (typeof part !== 'object' || part === null) return part
  if ('enum' in part && Array.isArray(part.enum) && part.enum.every((word) => typeof word === 'string'))
    return { type: 'string' }
  return Object.fromEntries(
    Object.entries(part).flatMap(([name, inside]) =>
      name === 'additionalProperties' && inside === false ? [] : [[name, withoutWords(inside)]],
    ),
  )
}
