// Keys that do not leave where they are: in PKCS#11 tokens, and in Vault's Transit engine. What is kept here of such a key says where it is.

import { derSignature } from '#pki/ecdsa-signature.ts'
import { keyTypeOfSpki, loadPrivateKey, type KeyType } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { sameBytes } from '#platform/bytes.ts'
import { systemClock, type Clock } from '#platform/clock.ts'
import type { Random } from '#platform/random.ts'
import { openPkcs11, Pkcs11Unavailable, type Curve, type Pkcs11, type Pkcs11Parts } from '#platform/pkcs11.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'
import {
  elsewhereOf,
  formatReference,
  formatTransitReference,
  isReference,
  parseReference,
  parseTransitReference,
  type BadReference,
  type Elsewhere,
  type NewKeyPlace,
} from './key-reference.ts'
import { TransitUnavailable, troubleText, type PlaceTrouble } from './key-unavailable.ts'
import { pinOf, type PinPlaces } from './token-pin.ts'
import type { TransitHost } from './transit-host.ts'
import { openTransitKeys, type TransitKeys } from './transit-keys.ts'
import type { TransitKey } from './vault-transit.ts'

/** `reference`: what is kept of it, complete. */
export type KeyElsewhere = Signer & { readonly reference: string }

export type KeysElsewhere = {
  /** Nothing is asked of the token before it signs. A signature is verified with `spki` before it is used. */
  signer(reference: string, spki: Uint8Array): Signer
  /** One that is there. Rejects with a `KeyUnavailable`, whose `trouble` is `key` where there is none of that name. */
  find(reference: string): Promise<KeyElsewhere>
  make(reference: string, type: KeyType): Promise<KeyElsewhere>
  /** Rejects where this host does not say how such keys are reached: no token and no Vault is asked. */
  load(where: Elsewhere): Promise<void>
  /** Looks whether what has failed works again. `kept`: the references in use; nothing is said of another key any more. */
  lookAgain(kept: () => readonly string[]): Promise<void>
  /** What is wrong with tokens and with Vault now. */
  troubles(): readonly PlaceTrouble[]
  close(): void
}

export type ElsewherePlaces = PinPlaces & {
  /** The file of the PKCS#11 module; null: none was named. */
  readonly module: string | null
  /** Null: none was named. */
  readonly vault: TransitHost | null
}

type Ticking = { readonly clock: Clock; readonly timers: Timers } & Pick<Pkcs11Parts, 'limits'>

/** Nothing is loaded, and no connection made, before it is needed. */
export const openKeysElsewhere = ({ module, vault, ...places }: ElsewherePlaces, ticking: Ticking): KeysElsewhere => {
  let opened: Pkcs11 | null = null
  let asked: TransitKeys | null = null
  const tokens = (): Pkcs11 => {
    if (module === null) throw noModule()
    opened ??= openPkcs11({ library: module, pinOf: (token) => pinOf(places, token), ...ticking })
    return opened
  }
  const transit = (): TransitKeys => {
    if (vault === null) throw noVault()
    asked ??= openTransitKeys(ticking, { ...vault, credentialsFolder: places.credentialsFolder })
    return asked
  }
  const inToken = (reference: string, spki: Uint8Array): KeyElsewhere => {
    const place = placeOf(reference)
    const type = keyTypeOfSpki(spki)
    if (type === null) throw new Error('the public key that is on record for a key in a token is none')
    const formed = type === 'ed25519' ? (signature: Uint8Array) => signature : derSignature
    return { type, spki, reference, sign: async (data) => formed(await tokens().sign(place, spki, data)) }
  }
  const inTransit = ({ name, version, spki }: TransitKey): KeyElsewhere => ({
    ...transit().signer({ key: name, version }, spki),
    reference: formatTransitReference({ key: name, version }),
  })

  return {
    signer(reference, spki) {
      if (elsewhereOf(reference) === 'pkcs11') return inToken(reference, spki)
      const { key, version } = transitPlaceOf(reference)
      if (version === null) throw unusable({ kind: 'malformed', why: 'it names no version: ;version=1' }, 'transit')
      const type = keyTypeOfSpki(spki)
      if (type === null) throw new Error('the public key that is on record for a key in Transit is none')
      // A plane whose host does not name a Vault starts, where it does not need the key.
      return { type, spki, sign: async (data) => transit().signer({ key, version }, spki).sign(data) }
    },
    async find(reference) {
      if (elsewhereOf(reference) === 'transit') return inTransit(await transit().find(transitPlaceOf(reference)))
      return inToken(reference, await tokens().find(placeOf(reference)))
    },
    async make(reference, type) {
      if (elsewhereOf(reference) === 'transit')
        return inTransit(await transit().make(transitPlaceOf(reference).key, type))
      const place = placeOf(reference)
      if (place.label === null) throw new Pkcs11Unavailable('key', 'a new key needs a label', 'Name one: ;object=LABEL')
      return inToken(reference, await tokens().make({ ...place, label: place.label }, curveOf[type]))
    },
    async load(where) {
      if (where === 'pkcs11') await tokens().load()
      else transit()
    },
    async lookAgain(kept) {
      const isKept = (reference: string): boolean => kept().map(spelledOnce).includes(reference)
      await Promise.all([
        opened?.lookAgain((place) => isKept(formatReference(place))),
        asked?.lookAgain((place) => isKept(formatTransitReference(place))),
      ])
    },
    troubles: () => [
      ...(opened?.troubles() ?? []).map(({ token, error }) => ({
        place: token === null ? 'the PKCS#11 module' : `the token ${token}`,
        text: troubleText(error),
      })),
      ...(asked?.troubles() ?? []),
    ],
    close() {
      opened?.close()
      asked?.close()
    },
  }
}

const curveOf: Readonly<Record<KeyType, Curve>> = { p256: 'P-256', p384: 'P-384', ed25519: 'Ed25519' }

/** What belongs to the key follows in further lines. */
const firstLine = (reference: string): string => reference.split('\n', 1)[0] ?? ''

const placeOf = (reference: string) => {
  const place = parseReference(firstLine(reference))
  if ('kind' in place) throw unusable(place, 'pkcs11')
  return place
}

const transitPlaceOf = (reference: string) => {
  const place = parseTransitReference(firstLine(reference))
  if ('kind' in place) throw unusable(place, 'transit')
  return place
}

/** Operators write a reference in more than one way. */
const spelledOnce = (reference: string): string =>
  elsewhereOf(reference) === 'transit'
    ? formatTransitReference(transitPlaceOf(reference))
    : formatReference(placeOf(reference))

const unusable = ({ why }: BadReference, where: Elsewhere): Error =>
  where === 'pkcs11'
    ? new Pkcs11Unavailable('key', `the reference to a key in a token cannot be used: ${why}`, 'Correct it')
    : new TransitUnavailable('key', `the reference to a key in Transit cannot be used: ${why}`, 'Correct it')

const noModule = (): Pkcs11Unavailable =>
  new Pkcs11Unavailable(
    'library',
    'a key is in a PKCS#11 token, and no PKCS#11 module is named',
    'Name the file of the module: --pkcs11-module FILE (MUSTER_PKCS11_MODULE)',
  )

const noVault = (): TransitUnavailable =>
  new TransitUnavailable(
    'settings',
    'a key is in Vault (Transit), and no Vault is named',
    'Name it: --vault-address URL --vault-roots FILE --vault-login LOGIN --vault-secret FILE',
  )

export type KeyMaking = { readonly elsewhere: KeysElsewhere; readonly random: Pick<Random, 'bytes'> }

/** Nothing removes a key from where it is: what an operator finds there has the role in its name. */
export const makeKeyElsewhere = (
  place: NewKeyPlace,
  role: string,
  type: KeyType,
  { elsewhere, random }: KeyMaking,
): Promise<KeyElsewhere> =>
  elsewhere.make(referenceAt(place, `muster-${role}-${random.bytes(8).toString('hex')}`), type)

export const referenceAt = (place: NewKeyPlace, name: string): string =>
  place === 'transit'
    ? formatTransitReference({ key: name, version: null })
    : formatReference({ ...place, label: name, id: null })

/** What a custody keeps, as a signer: the key itself, or where it is. Null: it is another key. */
export const signerOfKept = (elsewhere: KeysElsewhere, text: string, spki: Uint8Array): Signer | null => {
  if (isReference(text)) return elsewhere.signer(text, spki)
  const key = loadPrivateKey(text)
  return sameBytes(key.spki, spki) ? key : null
}

/** Where nothing is named: every key that is elsewhere is unavailable. */
export const nothingElsewhere: KeysElsewhere = openKeysElsewhere(
  { module: null, vault: null, pin: null, credentialsFolder: null },
  { clock: systemClock, timers: systemTimers },
)
