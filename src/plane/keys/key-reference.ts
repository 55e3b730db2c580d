// Where a key is that is not here: in a token, as a URI (RFC 7512), pkcs11:token=vault;object=root; or in Vault's Transit engine,
// transit:key=root;version=1. It is no secret. The module, the PIN, the Vault, its mount and the login are settings of the machine: what is
// written in a shared database must not make a plane load a library, nor send requests elsewhere.

import type { KeyPlace } from '#platform/pkcs11.ts'

const schemes = { pkcs11: 'pkcs11:', transit: 'transit:' } as const
const scheme = schemes.pkcs11

/** Where a reference leads. */
export type Elsewhere = keyof typeof schemes

/** Of a text that is kept in the place of a key: where it says that the key is. Null: the text is the key itself. */
export const elsewhereOf = (text: string): Elsewhere | null => {
  if (text.startsWith(schemes.pkcs11)) return 'pkcs11'
  return text.startsWith(schemes.transit) ? 'transit' : null
}

/** Whether a text that is kept in the place of a key says where it is. What belongs to the key follows in further lines. */
export const isReference = (text: string): boolean => elsewhereOf(text) !== null

export type BadReference = { readonly kind: 'malformed'; readonly why: string }

/** Where new keys are made: `object` and `id` are chosen then. */
export type TokenPlace = Pick<KeyPlace, 'token' | 'serial'>

/** `transit`: in the mount that is set. */
export type NewKeyPlace = TokenPlace | 'transit'

export const elsewhereOfPlace = (place: NewKeyPlace): Elsewhere => (place === 'transit' ? 'transit' : 'pkcs11')

/** `version` null: the newest one, when it is found. */
export type TransitPlace = { readonly key: string; readonly version: number | null }

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

/** As Vault names keys; a slash would lead to another path there. */
const keyShape = /^\w(?:[\w.-]{0,126}\w)?$/

export const parseTransitReference = (text: string): TransitPlace | BadReference => {
  if (elsewhereOf(text) !== 'transit') return bad('it does not begin with transit:')
  const [, key, version] = /^key=([^;]*)(?:;version=([1-9]\d{0,8}))?$/.exec(text.slice(schemes.transit.length)) ?? []
  if (key === undefined) return bad('it is not of the form transit:key=NAME or transit:key=NAME;version=1')
  if (!keyShape.test(key)) return bad('the name of the key is not one of Vault: letters, digits, and _ . - within')
  return { key, version: version === undefined ? null : Number(version) }
}

export const formatTransitReference = ({ key, version }: TransitPlace): string =>
  `${schemes.transit}key=${key}${version === null ? '' : `;version=${version}`}`

/** Null: it can be used. Of a reference to either. */
export const faultOfReference = (text: string): BadReference | null => {
  const parsed = elsewhereOf(text) === 'transit' ? parseTransitReference(text) : parseReference(text)
  return 'kind' in parsed ? parsed : null
}

const bad = (why: string): BadReference => ({ kind: 'malformed', why })

const partsOf = (text: string): Partial<Record<Name, Buffer>> | BadReference => {
  if (elsewhereOf(text) !== 'pkcs11') return bad('it does not begin with pkcs11:')
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
