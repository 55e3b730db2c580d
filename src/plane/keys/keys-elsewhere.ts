// Keys that do not leave where they are: in PKCS#11 tokens. What is kept here of such a key says where it is.

import { derSignature } from '#pki/ecdsa-signature.ts'
import { keyTypeOfSpki, loadPrivateKey } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { sameBytes } from '#platform/bytes.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import { openPkcs11, Pkcs11Unavailable, type Curve, type Pkcs11 } from '#platform/pkcs11.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'
import { isReference, parseReference, type BadReference } from './key-reference.ts'
import { pinOf, type PinPlaces } from './token-pin.ts'

export type KeysElsewhere = {
  /** Nothing is asked of the token before it signs. A signature is verified with `spki` before it is used. */
  signer(reference: string, spki: Uint8Array): Signer
  /** One that is there. Rejects with `Pkcs11Unavailable`, whose `trouble` is `key` where the token has none of that name. */
  find(reference: string): Promise<Signer>
  make(reference: string, type: 'p256' | 'p384'): Promise<Signer>
  /** Rejects where there is no module that could be used: no token is asked. */
  load(): Promise<void>
  /** What is wrong with tokens now, in sentences. */
  troubles(): readonly string[]
  close(): void
}

export type ElsewherePlaces = PinPlaces & {
  /** The file of the PKCS#11 module; null: none was named. */
  readonly module: string | null
}

type Ticking = { readonly clock: Pick<Clock, 'monotonicMs'>; readonly timers: Pick<Timers, 'after'> }

/** Nothing is loaded before it is needed. */
export const openKeysElsewhere = (
  { module, ...places }: ElsewherePlaces,
  { clock, timers }: Ticking,
): KeysElsewhere => {
  let opened: Pkcs11 | null = null
  const tokens = (): Pkcs11 => {
    if (module === null) throw noModule()
    opened ??= openPkcs11({ library: module, pinOf: (token) => pinOf(places, token), clock, timers })
    return opened
  }
  const signerOf = (reference: string, spki: Uint8Array): Signer => {
    const place = placeOf(reference)
    const type = keyTypeOfSpki(spki)
    if (type === null || type === 'ed25519') throw new Error(`a key in a token is of P-256 or P-384, not ${type}`)
    return { type, spki, sign: async (data) => derSignature(await tokens().sign(place, spki, data)) }
  }

  return {
    signer: signerOf,
    find: async (reference) => signerOf(reference, await tokens().find(placeOf(reference))),
    async make(reference, type) {
      const place = placeOf(reference)
      if (place.label === null) throw new Pkcs11Unavailable('key', 'a new key needs a label', 'Name one: ;object=LABEL')
      return signerOf(reference, await tokens().make({ ...place, label: place.label }, curveOf[type]))
    },
    load: async () => tokens().load(),
    troubles: () => opened?.troubles() ?? [],
    close: () => opened?.close(),
  }
}

const curveOf: Readonly<Record<'p256' | 'p384', Curve>> = { p256: 'P-256', p384: 'P-384' }

const placeOf = (reference: string) => {
  // What belongs to the key follows in further lines.
  const [first = ''] = reference.split('\n', 1)
  const place = parseReference(first)
  if ('kind' in place) throw unusable(place)
  return place
}

const unusable = ({ why }: BadReference): Pkcs11Unavailable =>
  new Pkcs11Unavailable('key', `the reference to a key in a token cannot be used: ${why}`, 'Correct it')

const noModule = (): Pkcs11Unavailable =>
  new Pkcs11Unavailable(
    'library',
    'a key is in a PKCS#11 token, and no PKCS#11 module is named',
    'Name the file of the module: --pkcs11-module FILE (MUSTER_PKCS11_MODULE)',
  )

/** What a custody keeps, as a signer: the key itself, or where it is. Null: it is another key. */
export const signerOfKept = (elsewhere: KeysElsewhere, text: string, spki: Uint8Array): Signer | null => {
  if (isReference(text)) return elsewhere.signer(text, spki)
  const key = loadPrivateKey(text)
  return sameBytes(key.spki, spki) ? key : null
}

/** Without a module: every key in a token is unavailable. */
export const nothingElsewhere: KeysElsewhere = openKeysElsewhere(
  { module: null, pin: null, credentialsFolder: null },
  { clock: systemClock, timers: systemTimers },
)
