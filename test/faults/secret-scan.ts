// Looks for very many fragments at once, in one pass over the bytes.

import type { Form, Fragment } from './secret-forms.ts'

export type Hit<S> = { readonly secret: S; readonly form: Form; readonly at: number }

/** The first hit of every secret in every form. */
export type Scan<S> = (bytes: Buffer) => readonly Hit<S>[]

type Needle<S> = { readonly secret: S; readonly fragment: Fragment }

const headBytes = 4
const filterBits = 22

export const scanFor = <S>(secrets: ReadonlyMap<S, readonly Fragment[]>): Scan<S> => {
  const needles = new Map<number, Needle<S>[]>()
  // Tells nearly all places without a lookup that nothing begins there.
  const filter = new Uint8Array(1 << filterBits)
  for (const [secret, fragments] of secrets) {
    for (const fragment of fragments) {
      if (fragment.bytes.length < headBytes) throw new Error('too short to look for')
      const head = fragment.bytes.readInt32LE(0)
      filter[slotOf(head)] = 1
      const others = needles.get(head)
      if (others === undefined) needles.set(head, [{ secret, fragment }])
      else others.push({ secret, fragment })
    }
  }
  return (bytes) => {
    const found = new Map<S, Map<Form, number>>()
    let head = 0
    for (let end = 0; end < bytes.length; end++) {
      head = (head >>> 8) | ((bytes[end] ?? 0) << 24)
      if (filter[slotOf(head)] === 0) continue
      const at = end - headBytes + 1
      if (at < 0) continue
      for (const { secret, fragment } of needles.get(head) ?? []) {
        if (!bytes.subarray(at, at + fragment.bytes.length).equals(fragment.bytes)) continue
        const forms = found.get(secret) ?? new Map<Form, number>()
        found.set(secret, forms)
        if (!forms.has(fragment.form)) forms.set(fragment.form, at)
      }
    }
    return [...found].flatMap(([secret, forms]) => [...forms].map(([form, at]) => ({ secret, form, at })))
  }
}

const slotOf = (head: number): number => Math.imul(head, 0x9e3779b1) >>> (32 - filterBits)
