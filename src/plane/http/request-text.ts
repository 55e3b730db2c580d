// What is refused in a request before its meaning is looked at: a JSON object that names a key twice, text that cannot be
// stored, and a secret in the place of a name, which would be stored and shown to every operator.

import { boundedText } from '#domain/core/change.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import { unfitText } from '#wire/core/strict-json.ts'

/** Null: all its text can be stored. */
export const unfitRequest = (request: Readonly<Record<'params' | 'query' | 'body', unknown>>): Refusal | null => {
  for (const part of ['params', 'query', 'body'] as const) {
    const place = unfitText(request[part])
    if (place === null) continue
    const detail = boundedText(`${part}${place} has a NUL character or half of a surrogate pair`)
    if (place === '') return refuse('REQUEST_INVALID', detail)
    return refuseField('REQUEST_INVALID', boundedText(place.slice(1).replaceAll('/', '.'), 128), detail)
  }
  return null
}

/** As Fastify reports a body that is not JSON. */
export const duplicateKeys = (): Error =>
  Object.assign(new SyntaxError('an object names a key twice'), { statusCode: 400, code: 'FST_ERR_CTP_DUPLICATE_KEYS' })

/** Fields that name something. Free texts (reasons, notes) are redacted where they are kept instead of being refused. */
const nameFields: ReadonlySet<string> = new Set(
  'name node node_id nodes id vcluster vclusters profile default_profile tag tags owner domain'.split(' '),
)

/** The first field of an object that names something and holds what looks like a secret; null: there is none. */
export const secretName = (fields: unknown): string | null => {
  if (typeof fields !== 'object' || fields === null) return null
  for (const [field, value] of Object.entries(fields)) {
    if (!nameFields.has(field)) continue
    const texts: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (texts.some((text) => typeof text === 'string' && redactSecrets(text) !== text)) return field
  }
  return null
}

export const secretRefusal = (field: string): Refusal =>
  refuseField(
    'REQUEST_INVALID',
    field,
    `${field} holds a secret; nothing was stored. Take another name, and revoke the secret if it may have been seen`,
  )
