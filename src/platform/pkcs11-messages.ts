// What the main thread and the thread of a PKCS#11 module say to each other: one order at a time, and its outcome.

/** Where a key is. Its label, its id, or both. */
export type KeyPlace = {
  readonly token: string
  /** Where several tokens have that label; null: none does. */
  readonly serial: string | null
  readonly label: string | null
  /** Hex. */
  readonly id: string | null
}

export type Curve = 'P-256' | 'P-384' | 'Ed25519'

type What =
  /** Answers with the signature: ECDSA as r and s. `spki`: verified with it before it is used. */
  | { readonly kind: 'sign'; readonly key: KeyPlace; readonly data: Uint8Array; readonly spki: Uint8Array }
  /** Answers with its SubjectPublicKeyInfo. */
  | { readonly kind: 'find'; readonly key: KeyPlace }
  /** Answers with its SubjectPublicKeyInfo. */
  | { readonly kind: 'make'; readonly key: KeyPlace & { readonly label: string }; readonly curve: Curve }

/** No token is asked: whether the module is there, and says that it works. */
export type LoadOrder = { readonly kind: 'load'; readonly key: KeyPlace }

/** `pin`: null before the thread has asked for it. */
export type Order = (What | LoadOrder) & { readonly pin: string | null }

export type Outcome =
  | { readonly kind: 'done'; readonly bytes: Uint8Array }
  /** The token is not logged in: the same order again, with the PIN. */
  | { readonly kind: 'pin wanted' }
  | { readonly kind: 'failed'; readonly trouble: Trouble; readonly why: string; readonly next: string }

/**
 * `pin`: it was refused, and must not be tried again. `key`: there is none, or more than one: the token is well. `library`: there is no
 * module. `token`: all else.
 */
export type Trouble = 'pin' | 'key' | 'library' | 'token'

export type ThreadStart = {
  readonly library: string
  /** Of all threads of this process that call the module. */
  readonly shared: Int32Array
  /** Of this thread: its number, and whether it is inside the module. */
  readonly own: Int32Array
  /** For tests: blocks the thread before every signature, as a slow token does. 0 elsewhere. */
  readonly delayMs: number
}
