// Where a key is that does not leave a token, as a URI (RFC 7512): pkcs11:token=vault;object=root. It is no secret. The module and
// the PIN are settings of the machine: what is written in a shared database must not make a plane load a library.

import type { KeyPlace } from '#platform/pkcs11.ts'

const scheme = 'pkcs11:'

/** Whether a text that is kept in the place of a key says where it is. What belongs to the key follows in further lines. */
export const isReference = (text: string): boolean => text.startsWith(scheme)

export type BadReference = { readonly kind: 'malformed'; readonly why: string }

/** Where new keys are made: `object` and `id` are chosen then. */
export type TokenPlace = Pick<KeyPlace, 'token' | 'serial'>

const longest = 512
const known = ['token', 'serial', 'object', 'id', 'type'] as const
type Name = (typeof known)[number]

/** Of a key in a token: its label, its id or both are given. */
export const parseReference = (text: string): KeyPlace | BadReference => {
  const parts = partsOf(text)
  if ('kind' in parts) return parts
  const { token, serial, object, id } = parts
  if (token === undefined) return bad('it names no token: pkcs11:token=LABEL;object=LABEL')
  if (object === undefined && id === undefined) return bad('it names no key: ;object=LABEL or ;id=%01%02')
  return {
    token: token.toString(),
    serial: serial?.toString() ?? null,
    label: object?.toString() ?? null,
    id: id?.toString('hex') ?? null,
  }
}

/** Of a token and no key in it. */
export const parseTokenReference = (text: string): TokenPlace | BadReference => {
  const parts = partsOf(text)
  if ('kind' in parts) return parts
  const { token, serial, object, id } = parts
  if (token === undefined) return bad('it names no token: pkcs11:token=LABEL')
  if (object !== undefined || id !== undefined) return bad('it names a key; keys are made and named as they are needed')
  return { token: token.toString(), serial: serial?.toString() ?? null }
}

export const formatReference = ({ token, serial, label, id }: KeyPlace): string => {
  const parts = [
    ['token', encodeURIComponent(token)],
    ...(serial === null ? [] : [['serial', encodeURIComponent(serial)]]),
    ...(label === null ? [] : [['object', encodeURIComponent(label)]]),
    ...(id === null ? [] : [['id', id.replaceAll(/../g, (byte) => `%${byte}`)]]),
  ]
  return `${scheme}${parts.map((part) => part.join('=')).join(';')}`
}

const bad = (why: string): BadReference => ({ kind: 'malformed', why })

const partsOf = (text: string): Partial<Record<Name, Buffer>> | BadReference => {
  if (!isReference(text)) return bad('it does not begin with pkcs11:')
  if (text.length > longest) return bad(`it is longer than ${longest} characters`)
  // Among what may follow are a PIN, and a library that is loaded.
  if (text.includes('?'))
    return bad('leave out what follows the question mark: --pkcs11-module names the module, and --pkcs11-pin the PIN')
  const found: Partial<Record<Name, Buffer>> = {}
  for (const part of text.slice(scheme.length).split(';')) {
    const [name = '', ...rest] = part.split('=')
    const attribute = known.find((one) => one === name)
    if (attribute === undefined) return bad('it has an attribute that is none of token, serial, object, id and type')
    const value = decoded(rest.join('='))
    if (value === null || value.length === 0) return bad(`${attribute} is empty, or not percent-encoded`)
    if (found[attribute] !== undefined) return bad(`${attribute} is given twice`)
    if (attribute !== 'id' && !isText(value)) return bad(`${attribute} is not a text`)
    found[attribute] = value
  }
  if (found.type !== undefined && found.type.toString() !== 'private') return bad('type has to be private, or left out')
  return found
}

const decoded = (value: string): Buffer | null => {
  if (!/^(?:[^%\s]|%[0-9a-fA-F]{2})*$/.test(value)) return null
  const bytes = [...value.matchAll(/%(..)|([^%]+)/g)].map(([, hex, plain = '']) =>
    hex === undefined ? Buffer.from(plain) : Buffer.from(hex, 'hex'),
  )
  return Buffer.concat(bytes)
}

/** Labels are printed, and name files. */
const isText = (value: Buffer): boolean =>
  /^[^\p{C}]+$/u.test(value.toString()) && Buffer.from(value.toString()).equals(value)
