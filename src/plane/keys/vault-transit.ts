// Keys in Vault's Transit engine: they sign there and never leave it. A key is named by name and version, so that a rotation there changes nothing
// here, and what comes back is verified with the public key that was pinned.

import { hash } from 'node:crypto'
import type { KeyType } from '#domain/core/profile.ts'
import { policyLine, vaultWrite } from '#domain/issuers/vault-line.ts'
import { fromPem } from '#pki/pem.ts'
import { algorithmOf, digestOf, verifyAs } from '#pki/signature.ts'
import type { Signer } from '#pki/signer.ts'
import type { Timers } from '#platform/timers.ts'
import { ed25519Spki, keyTypeOfSpki } from '#pki/spki.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import { refusalOf, VaultFault, type VaultReply } from '#plane/outside/vault-reply.ts'
import type { Vault } from '#plane/outside/vault-server.ts'

export type TransitKeyName = {
  /** Of the secrets engine: `transit`. */
  readonly mount: string
  readonly name: string
  readonly version: number
}

export type TransitKey = TransitKeyName & { readonly spki: Uint8Array }

type Named = Pick<TransitKeyName, 'mount' | 'name'>

/** The newest version of a key, or the one that is named, to be pinned. Rejects with a VaultFault that says what is wrong with it. */
export const readTransitKey = async (
  vault: Pick<Vault, 'ask'>,
  { version, ...key }: Named & { readonly version: number | null },
  signal: AbortSignal,
): Promise<TransitKey> => {
  const path = `${key.mount}/keys/${key.name}`
  const reply = await vault.ask({ method: 'GET', path }, signal)
  if (reply.status === 404 && !reply.said.includes('no handler for route'))
    throw keyFault(key, `there is none: ${vaultWrite(path, { type: 'ecdsa-p256' })}`)
  if (reply.status !== 200 || reply.data === null) throw keyFault(key, refusalOf(reply, path, 'read'))
  const { type, keys, latest_version: latest, exportable, allow_plaintext_backup: backup, derived } = reply.data
  const problem = unfit({ type, exportable, backup, derived })
  if (problem !== null) throw keyFault(key, problem)
  const wanted = version ?? latest
  if (typeof wanted !== 'number') throw keyFault(key, 'Vault does not say which version is the newest')
  const spki = spkiIn(keys, wanted)
  if (spki === null) throw keyFault(key, `it has no version ${wanted}`)
  return { ...key, version: wanted, spki }
}

const typeThere: Readonly<Record<KeyType, string>> = { p256: 'ecdsa-p256', p384: 'ecdsa-p384', ed25519: 'ed25519' }

/** Makes a key that Vault does not let out. Rejects where the name is taken: no one could say afterwards which key has signed. */
export const makeTransitKey = async (
  vault: Pick<Vault, 'ask'>,
  key: Named,
  type: KeyType,
  signal: AbortSignal,
): Promise<TransitKey> => {
  const path = `${key.mount}/keys/${key.name}`
  // Vault answers the same where it has made none.
  if ((await vault.ask({ method: 'GET', path }, signal)).status === 200)
    throw keyFault(key, 'there is one already: choose another name')
  const reply = await vault.ask({ method: 'POST', path, json: { type: typeThere[type] } }, signal)
  if (reply.status === 403)
    throw keyFault(
      key,
      `permission denied: ${policyLine(path, 'update')}; or make it: ${vaultWrite(path, { type: typeThere[type] })}`,
    )
  if (reply.status >= 300) throw keyFault(key, refusalOf(reply, path, 'update'))
  return readTransitKey(vault, { ...key, version: null }, signal)
}

const unfit = (key: Readonly<Record<'type' | 'exportable' | 'backup' | 'derived', unknown>>): string | null => {
  if (typeof key.type !== 'string' || !['ecdsa-p256', 'ecdsa-p384', 'ed25519'].includes(key.type))
    return `it is of type ${String(key.type)}: make one of ecdsa-p256, ecdsa-p384 or ed25519`
  if (key.derived === true) return 'it is derived anew from a context for each use: make one without derivation'
  if (key.exportable === true) return 'it is exportable, and Vault never takes that back: make another one'
  if (key.backup === true) return 'it may be backed up in plain text, and Vault never takes that back: make another one'
  return null
}

const spkiIn = (keys: unknown, version: number): Uint8Array | null => {
  const versions = keys as Readonly<Record<string, { readonly public_key?: unknown } | undefined>> | null
  const text = versions?.[version]?.public_key
  if (typeof text !== 'string') return null
  // Ed25519 keys come bare, the others as PEM.
  const spki = fromPem('PUBLIC KEY', text) ?? ed25519Spki(Buffer.from(text, 'base64'))
  return spki !== null && keyTypeOfSpki(spki) !== null ? spki : null
}

const mostWaitMs = 10_000

export type TransitSigner = Omit<Signer, 'sign'> & { sign(data: Uint8Array): Promise<Uint8Array> }

/** Nothing is asked of Vault before it signs. Rejects with a sentence for people: a VaultFault or an IssuerFault. */
export const openTransitSigner = (
  { vault, timers }: { readonly vault: Pick<Vault, 'ask'>; readonly timers: Pick<Timers, 'after'> },
  key: TransitKey,
): TransitSigner => {
  const type = keyTypeOfSpki(key.spki)
  if (type === null) throw new Error(`the public key pinned for ${key.mount}/${key.name} is none`)
  return {
    type,
    spki: key.spki,
    sign: async (data) => {
      const path = `${key.mount}/sign/${key.name}`
      const json = { ...inputFor(type, data), key_version: key.version, marshaling_algorithm: 'asn1' }
      const reply = await inTime(timers, key, (signal) => vault.ask({ method: 'POST', path, json }, signal))
      if (reply.status !== 200) throw refusedToSign(key, path, reply)
      const signature = signatureIn(reply, key.version)
      if (signature === null)
        throw keyFault(key, 'Vault has answered with something that is no signature of that version')
      if (!verifyAs(algorithmOf[type], key.spki, data, signature))
        throw keyFault(key, 'the signature is not by the key that is on record: another key has its name now')
      return signature
    },
  }
}

/** Logging in and waiting for a connection count, too. */
const inTime = async <T>(
  timers: Pick<Timers, 'after'>,
  key: TransitKeyName,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const late = new AbortController()
  const cancel = timers.after(mostWaitMs, () => late.abort())
  try {
    return await run(late.signal)
  } catch (error) {
    if (late.signal.aborted)
      throw new IssuerFault(`${nameOf(key)}: no signature within ${mostWaitMs / 1000} s`, 'timeout', false)
    // Vault answers with a fault of its own where a version may not be used. A login that found no server is one, too, and says nothing of the key.
    if (error instanceof VaultFault && error.code === 'broken' && error.message.includes(versionRefused))
      throw keyFault(key, whyNot(key, error.message))
    throw error
  } finally {
    cancel()
  }
}

/** ECDSA signs a digest, and the data stays here. Ed25519 signs the data itself. */
const inputFor = (type: KeyType, data: Uint8Array): object => {
  const digest = digestOf[algorithmOf[type]]
  return digest === null
    ? { input: Buffer.from(data).toString('base64') }
    : { input: hash(digest, data, 'base64'), prehashed: true, hash_algorithm: digest.replace('sha', 'sha2-') }
}

const signatureIn = ({ data }: VaultReply, version: number): Uint8Array | null => {
  const text = data?.['signature']
  const found = typeof text === 'string' ? /^vault:v(\d+):([A-Za-z0-9+/]{1,256}={0,2})$/.exec(text) : null
  return found?.[1] === String(version) ? Buffer.from(found[2] ?? '', 'base64') : null
}

const refusedToSign = (key: TransitKeyName, path: string, reply: VaultReply): VaultFault => {
  const { said, status } = reply
  if (status === 403) return keyFault(key, `permission denied: ${policyLine(path, 'update')}`)
  if (said.includes('signing key not found')) return keyFault(key, 'it is gone: restore it from a backup of Vault')
  return keyFault(key, whyNot(key, refusalOf(reply, path, 'update')))
}

const versionRefused = 'requested version for signing'

const whyNot = ({ mount, name, version }: TransitKeyName, said: string): string =>
  said.includes('minimum encryption key version')
    ? `it may not sign any more: ${vaultWrite(`${mount}/keys/${name}/config`, { min_encryption_version: version })}`
    : said

const keyFault = (key: PerhapsVersioned, why: string): VaultFault =>
  new VaultFault('key', `${nameOf(key)}: ${why}`, true)

type PerhapsVersioned = Named & { readonly version?: number }

const nameOf = ({ mount, name, version }: PerhapsVersioned): string =>
  `the key ${mount}/keys/${name}${version === undefined ? '' : ` version ${version}`}`
