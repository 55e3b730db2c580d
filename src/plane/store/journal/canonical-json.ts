// One text for one value: keys sorted by UTF-16 code units, no white space, numbers and strings as ECMAScript writes
// them (RFC 8785). What has no such text is a bug of the caller and throws.

export type CanonicalValue =
  string | number | boolean | null | readonly CanonicalValue[] | { readonly [key: string]: CanonicalValue }

export const canonicalJson = (value: CanonicalValue): string => {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return JSON.stringify(value)
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical form`)
      return JSON.stringify(value)
    case 'object':
      if (value === null) return 'null'
      return Array.isArray(value) ? canonicalList(value) : canonicalRecord(value as CanonicalRecord)
    default:
      throw new TypeError(`a ${typeof value} has no canonical form`)
  }
}

type CanonicalRecord = { readonly [key: string]: CanonicalValue }

const canonicalList = (list: readonly CanonicalValue[]): string => `[${list.map(canonicalJson).join(',')}]`

const canonicalRecord = (record: CanonicalRecord): string => {
  let text = ''
  // The default order is the one of UTF-16 code units; a locale must have no say in what is hashed.
  for (const key of Object.keys(record).sort()) {
    const separator = text === '' ? '' : ','
    text += `${separator}${JSON.stringify(key)}:${canonicalJson(record[key] as CanonicalValue)}`
  }
  return `{${text}}`
}
