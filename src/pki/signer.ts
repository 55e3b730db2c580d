// A private key that signs, wherever it is: in this process, in a hardware token, at a key service.

import type { KeyType } from '#domain/core/profile.ts'

export type Signer = {
  readonly type: KeyType
  /** SubjectPublicKeyInfo, DER. */
  readonly spki: Uint8Array
  /** With the algorithm `algorithmOf` names for its type. A promise where the key is elsewhere; it rejects where that cannot be reached. */
  sign(data: Uint8Array): Uint8Array | Promise<Uint8Array>
}

/** What is made with a signer: there at once where it signs at once. */
export type MadeWith<S extends Signer, T> = ReturnType<S['sign']> extends Uint8Array ? T : T | Promise<T>

/** Signs, and makes the whole of it. A key in this process costs no promise and no turn of the loop: signing is the hot path. */
export const signedWith = <S extends Signer, T>(
  signer: S,
  data: Uint8Array,
  make: (signature: Uint8Array) => T,
): MadeWith<S, T> => goOn(signer.sign(data), make) as MadeWith<S, T>

/** Goes on at once with what is there at once. */
export const goOn = <T, R>(value: T | Promise<T>, make: (value: T) => R): R | Promise<R> =>
  value instanceof Promise ? value.then(make) : make(value)
