// What a secret looks like once a program has written it down: as it is, encoded, escaped, or only a piece of it.

export type Form = 'raw' | 'hex' | 'HEX' | 'base64' | 'base64url' | 'URL-encoded' | 'in JSON'

/** A piece of a secret that is long enough to give it away. */
export type Fragment = { readonly form: Form; readonly bytes: Buffer }

const runCharacters = 24
const runBytes = 16

/** Of a token or password: text. */
export const formsOfText = (text: string): readonly Fragment[] => [
  ...runs('raw', text),
  ...unless(text, 'URL-encoded', encodeURIComponent(text)),
  ...unless(text, 'in JSON', JSON.stringify(text).slice(1, -1)),
  ...encodings(Buffer.from(text)),
]

/** Of the private half of a key, however it is wrapped: PEM, DER and JWK all hold these very bytes. */
export const formsOfKey = (material: Buffer): readonly Fragment[] => [
  ...pieces('raw', material, runBytes),
  ...encodings(material),
  ...base64Texts(material).flatMap((text) => unless(text, 'URL-encoded', encodeURIComponent(text))),
]

const encodings = (bytes: Buffer): readonly Fragment[] => [
  ...runs('hex', bytes.toString('hex')),
  ...runs('HEX', bytes.toString('hex').toUpperCase()),
  ...base64Texts(bytes).flatMap((text) => [
    ...runs('base64', text),
    ...unless(text, 'base64url', text.replaceAll('+', '-').replaceAll('/', '_')),
  ]),
]

/** Base64 depends on what stands before: three texts, each without the characters that its neighbours have a part in. */
const base64Texts = (bytes: Buffer): readonly string[] =>
  [0, 1, 2].map((before) =>
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)),
  )

/** Nothing where the encoding changes nothing. */
const unless = (same: string, form: Form, text: string): readonly Fragment[] => (text === same ? [] : runs(form, text))

const runs = (form: Form, text: string): readonly Fragment[] => pieces(form, Buffer.from(text), runCharacters)

/** Every piece of that length; all of it where it is shorter. */
const pieces = (form: Form, bytes: Buffer, length: number): readonly Fragment[] =>
  Array.from({ length: Math.max(1, bytes.length - length + 1) }, (_, at) => ({
    form,
    bytes: bytes.subarray(at, at + length),
  }))
