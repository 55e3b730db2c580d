// Which bytes of a file a request asks for (RFC 9110, 13 and 14). One range at most: a list of ranges is answered with the whole
// file, as is anything that cannot be read as a range.

export type ByteRange = { readonly from: number; readonly to: number }

export type AskedBytes =
  | { readonly kind: 'whole' }
  /** `to` is the last byte of it. */
  | ({ readonly kind: 'part' } & ByteRange)
  | { readonly kind: 'unsatisfiable' }

type RangeHeaders = { readonly range?: string | undefined; readonly ifRange?: string | undefined }

const oneRange = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i

/** `etag` is a strong one: a range is given only to a caller that has the rest of the same bytes, or that does not say. */
export const askedBytes = ({ range, ifRange }: RangeHeaders, etag: string, length: number): AskedBytes => {
  const [, first = '', last = ''] = oneRange.exec(range?.trim() ?? '') ?? []
  if (first === '' && last === '') return { kind: 'whole' }
  if (ifRange !== undefined && ifRange.trim() !== etag) return { kind: 'whole' }
  if (first === '') return lastBytes(Number(last), length)
  const from = Number(first)
  const to = last === '' ? length - 1 : Math.min(Number(last), length - 1)
  if (last !== '' && Number(last) < from) return { kind: 'whole' }
  return from >= length ? { kind: 'unsatisfiable' } : { kind: 'part', from, to }
}

const lastBytes = (count: number, length: number): AskedBytes =>
  count === 0 || length === 0
    ? { kind: 'unsatisfiable' }
    : { kind: 'part', from: Math.max(0, length - count), to: length - 1 }
