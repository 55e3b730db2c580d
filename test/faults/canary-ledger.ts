// Every secret a run of the canary test has planted or learned, and whose it is.

import { createPrivateKey, randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { noLeaves, type Leaves } from '#agent/programs/leaf-store.ts'
import type { Credentials } from '#agent/state/credentials.ts'
import { openKeyCustody } from '#plane/keys/key-custody.ts'
import { bearerIn } from '#plane/authority/recovery-authority.ts'
import { sealingKeyOf } from '#plane/keys/seal.ts'
import { systemRandom } from '#platform/random.ts'
import { formsOfKey, formsOfText, type Fragment } from './secret-forms.ts'

export const secretKinds = [
  'enrollment token',
  "administrator's key",
  "operator's key",
  'sealing key',
  'key of the plane',
  'bearer secret',
  'root key kept elsewhere',
  'key of an agent',
  'recovery key of an agent',
  'WireGuard key of an agent',
  'key of a program',
  'bearer token',
  'repair token',
  'bootstrap key',
  'webhook secret',
  'webhook address',
  'out of place',
] as const
export type SecretKind = (typeof secretKinds)[number]

/** `owner`: the node or person it is of; for one that is out of place, where it was put. */
export type Secret = { readonly kind: SecretKind; readonly owner: string }

export type Ledger = {
  /** A key as PEM, or any other secret as it is handed around. */
  learn(kind: SecretKind, owner: string, text: string): void
  /** A key by its bytes, however it is wrapped. */
  learnKey(kind: SecretKind, owner: string, material: Buffer): void
  /** A secret of Muster's own shape that nothing knows, for a place where none belongs. */
  misplaced(where: string, prefix?: 'enroll' | 'recover' | 'repair' | 'muster_key'): string
  /** The same without a shape that could be recognised: for places of which nothing is to be written down at all. */
  shapeless(where: string): string
  secrets(): ReadonlyMap<Secret, readonly Fragment[]>
}

const pemKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]+?-----END [A-Z ]*PRIVATE KEY-----/g

export const openLedger = (): Ledger => {
  const known = new Map<string, Secret>()
  const fragments = new Map<Secret, readonly Fragment[]>()
  const learn: Ledger['learn'] = (kind, owner, text) => {
    const keys = text.match(pemKey)
    for (const value of keys ?? [text]) {
      if (known.has(value)) continue
      const secret = { kind, owner }
      known.set(value, secret)
      fragments.set(secret, keys === null ? formsOfText(value) : formsOfKey(privateHalf(value)))
    }
  }
  const learnKey: Ledger['learnKey'] = (kind, owner, material) => {
    const value = material.toString('hex')
    if (known.has(value)) return
    const secret = { kind, owner }
    known.set(value, secret)
    fragments.set(secret, formsOfKey(material))
  }
  const random = (): string => randomBytes(32).toString('base64url')
  return {
    learn,
    learnKey,
    misplaced(where, prefix = 'enroll') {
      const secret = `${prefix}_${random()}`
      learn('out of place', where, secret)
      return secret
    },
    shapeless(where) {
      const secret = random()
      learn('out of place', where, secret)
      return secret
    },
    secrets: () => fragments,
  }
}

const privateHalf = (pem: string): Buffer => {
  const { d } = createPrivateKey(pem).export({ format: 'jwk' })
  if (d === undefined) throw new Error('not a private key')
  return Buffer.from(d, 'base64url')
}

/**
 * All keys in an agent's folder by now: of the certificate in use, the one before, the one asked for, for recovery, for WireGuard and
 * of programs.
 */
export const learnFromAgent = (ledger: Ledger, node: string, stateFolder: string): void => {
  for (const name of ['identity.json', 'identity.json.new']) {
    const kept = parsedAs<Credentials>(path.join(stateFolder, name))
    if (kept === null) continue
    const { identity, request } = kept
    const keys = [identity?.current, identity?.previous, request].flatMap((has) => has?.keyPem ?? [])
    for (const pem of keys) ledger.learn('key of an agent', node, pem)
    if (request?.recoveryKey) ledger.learn('recovery key of an agent', node, request.recoveryKey.keyPem)
    const credential = identity?.recovery?.credential
    if (credential?.kind === 'key') ledger.learn('recovery key of an agent', node, credential.keyPem)
    if (credential?.kind === 'bearer') ledger.learn('bearer token', node, credential.token)
  }
  for (const name of ['programs.json', 'programs.json.new']) {
    const { leaves, requests } = parsedAs<Leaves>(path.join(stateFolder, name)) ?? noLeaves
    for (const { keyPem } of [...leaves, ...requests]) ledger.learn('key of a program', node, keyPem)
  }
  for (const name of ['wireguard.key', 'wireguard.key.new']) {
    const material = Buffer.from(textOf(path.join(stateFolder, name)), 'base64')
    if (material.length === 32) ledger.learnKey('WireGuard key of an agent', node, material)
  }
}

/** Below the directory that an agent publishes to: a folder for each output. */
export const learnFromOutputs = (ledger: Ledger, node: string, directory: string): void => {
  for (const output of fs.existsSync(directory) ? fs.readdirSync(directory) : []) {
    const key = textOf(path.join(directory, output, 'key.pem'))
    if (key.includes('PRIVATE KEY')) ledger.learn('key of a program', node, key)
  }
}

const textOf = (file: string): string => {
  try {
    return fs.readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}

const parsedAs = <T>(file: string): T | null => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as T
  } catch {
    // Not there, or not whole: the next look sees it.
    return null
  }
}

/** What the plane has sealed, opened with the key it was sealed with. */
export const learnFromPlane = (ledger: Ledger, dataFolder: string, sealKeyHex: string): void => {
  const keys = path.join(dataFolder, 'keys')
  const sealing = sealingKeyOf(Buffer.from(sealKeyHex, 'hex'), systemRandom)
  const custody = openKeyCustody(keys, { key: sealing, file: '', protection: 'protected' })
  for (const name of custody.names()) {
    const text = custody.find(name)
    if (text === null) continue
    if (name.role === 'bearer') ledger.learn('bearer secret', name.role, text)
    else ledger.learn('key of the plane', name.role, text)
  }
  const journal = fs.readFileSync(path.join(keys, 'journal.key'), 'utf8')
  ledger.learn('key of the plane', 'journal', sealing.unseal('journal/head', journal))
}

/** Every bearer token that was ever derived, handed out or not. */
export const learnDerivedTokens = (ledger: Ledger, dataFolder: string, sealKeyHex: string): void => {
  const sealing = sealingKeyOf(Buffer.from(sealKeyHex, 'hex'), systemRandom)
  const custody = openKeyCustody(path.join(dataFolder, 'keys'), { key: sealing, file: '', protection: 'protected' })
  const bearerFor = bearerIn(custody)
  const database = new DatabaseSync(path.join(dataFolder, 'muster.db'), { readOnly: true })
  try {
    const known = database.prepare(
      `SELECT certificate.node, json_extract(certificate.doc, '$.spki') AS spki, json_extract(node.doc, '$.counter') AS counter
       FROM certificate JOIN node ON node.key = certificate.node`,
    )
    for (const { node, spki, counter } of known.all()) {
      for (let count = 0; count <= Number(counter); count++) {
        const token = bearerFor({ node: String(node), counter: count, spki: String(spki) })
        ledger.learn('bearer token', String(node), token)
      }
    }
  } finally {
    database.close()
  }
}
