// The Vault whose Transit engine has keys of this plane: settings of the host say where it is, what its server is verified with, and how to log in.
// Secrets are in a file or a systemd credential; they are read again when a login is refused.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import * as path from 'node:path'
import { allFromPem, toPem } from '#pki/pem.ts'
import { othersMayRead, readShortFile } from '#platform/files.ts'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import { tokenInFile, type VaultLogin } from '#plane/outside/vault-login.ts'
import { VaultFault } from '#plane/outside/vault-reply.ts'
import { openVault, type Vault } from '#plane/outside/vault-server.ts'
import { TransitUnavailable } from './key-unavailable.ts'

/** `mount`: of the auth method. */
export type TransitLogin =
  | { readonly kind: 'token' }
  | { readonly kind: 'approle'; readonly roleId: string; readonly mount: string }
  | { readonly kind: 'certificate'; readonly role: string; readonly mount: string }

export type TransitHost = {
  /** `https://vault.example:8200` */
  readonly address: string
  /** A file with the roots (PEM) that its server is verified with. */
  readonly rootsFile: string
  readonly login: TransitLogin
  /** A file: the token, the secret ID, or key and certificate (PEM). Null: the systemd credential. */
  readonly secretFile: string | null
  /** Of the secrets engine. */
  readonly mount: string
}

export type TransitPlaces = TransitHost & { readonly credentialsFolder: string | null }

const credentialName = 'muster-vault-secret'
const longestFile = 64 * 1024
/** As many signatures as are made at once. */
const mostConnections = 8

type Ticking = { readonly clock: Clock; readonly timers: Timers }
type Files = { readonly roots: string; readonly secretFile: string; readonly secret: string }

/** Nothing is read and no connection is made before it is asked. Throws `TransitUnavailable` where a file cannot be used. */
export const openTransitHost = ({ clock, timers }: Ticking, places: TransitPlaces): Pick<Vault, 'ask' | 'close'> => {
  let opened: { readonly vault: Vault; readonly files: Files } | null = null
  const open = (files: Files): Vault => {
    const { address } = places
    const server = { address, roots: [files.roots], namespace: null, login: loginWith(places, files), mostConnections }
    const vault = openVault({ clock, timers }, server)
    // Only now: with files that cannot be used yet, the one that was open is asked again later.
    opened?.vault.close()
    opened = { vault, files }
    return vault
  }
  return {
    async ask(request, signal) {
      const { vault, files } = opened ?? { vault: open(filesOf(places)), files: null }
      try {
        return await vault.ask(request, signal)
      } catch (error) {
        if (files === null || !mayBeOutdated(error)) throw error
        const now = filesOf(places)
        // Another request may have been quicker.
        const isSame = opened !== null && now.secret === opened.files.secret && now.roots === opened.files.roots
        if (isSame && opened?.vault === vault) throw error
        return (isSame && opened !== null ? opened.vault : open(now)).ask(request, signal)
      }
    },
    close() {
      opened?.vault.close()
      opened = null
    },
  }
}

/** `broken`: of a login that found no server that it trusts, too. */
const mayBeOutdated = (error: unknown): boolean =>
  (error instanceof VaultFault && (error.code === 'login' || error.code === 'broken')) ||
  (error instanceof IssuerFault && error.code === 'untrusted')

const filesOf = ({ rootsFile, secretFile, credentialsFolder }: TransitPlaces): Files => {
  const roots = readFile(rootsFile, 'the roots of Vault')
  const certificates = allFromPem('CERTIFICATE', roots)
  if (certificates === null || certificates.length === 0)
    throw unusable(
      `${rootsFile} holds no certificate in PEM`,
      'Put the roots there that the server of Vault hangs under',
    )
  const file = secretFile ?? credentialFile(credentialsFolder)
  if (secretFile !== null && othersMayReadIt(file)) throw unusable(`others may read ${file}`, `chmod 600 ${file}`)
  const secret = readFile(file, 'the secret of the login at Vault').trim()
  if (secret === '') throw unusable(`${file} is empty`, 'Put the secret of the login at Vault there')
  return { roots: certificates.map((der) => toPem('CERTIFICATE', der)).join(''), secretFile: file, secret }
}

const credentialFile = (folder: string | null): string => {
  if (folder !== null) return path.join(folder, credentialName)
  throw unusable(
    'no secret for the login at Vault is named',
    `Name its file: --vault-secret FILE, or hand over the systemd credential ${credentialName}`,
  )
}

const othersMayReadIt = (file: string): boolean => {
  try {
    return othersMayRead(file)
  } catch {
    // What is wrong with it is said by who reads it.
    return false
  }
}

const readFile = (file: string, what: string): string => {
  try {
    const read = readShortFile(file, longestFile)
    if (read === null) throw new Error(`there is no file ${file}`)
    if (read === 'too-long') throw new Error(`${file} is too long`)
    return read.text
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw unusable(`${what} cannot be read: ${why}`, `Put it there, and let the plane read ${file}`)
  }
}

const loginWith = ({ login }: TransitPlaces, { secretFile, secret }: Files): VaultLogin => {
  switch (login.kind) {
    case 'token':
      return tokenInFile(secretFile)
    case 'approle':
      if (!/^[\x21-\x7e]+$/.test(secret))
        throw unusable(`${secretFile} does not hold one secret ID`, 'Put it there alone')
      return { ...login, secretId: secret }
    case 'certificate':
      return { kind: 'certificate', role: login.role, mount: login.mount, ...pairIn(secretFile, secret) }
  }
}

const certificateShape = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** TLS uses both: they may be of kinds that Muster does not read otherwise. */
const pairIn = (file: string, pem: string): { readonly key: string; readonly cert: string } => {
  const pair = { key: pem.replaceAll(certificateShape, ''), cert: pem.match(certificateShape)?.join('\n') ?? '' }
  try {
    void createPrivateKey(pair.key)
    void new X509Certificate(pair.cert)
    return pair
  } catch {
    throw unusable(`${file} does not hold a private key and its certificate in PEM`, 'Put both there, unencrypted')
  }
}

const unusable = (why: string, next: string): TransitUnavailable => new TransitUnavailable('settings', why, next)
