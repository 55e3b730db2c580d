// The first run of a domain: its root, and the CA below it. The keys are durable when this resolves; the caller commits
// the rows together with the domain itself. An issuer with a key in memory is made at every start, the first included.

import * as path from 'node:path'
import type { Attribution } from '#domain/core/change.ts'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { toPem } from '#pki/pem.ts'
import { makeFolder, replaceFile } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import { issuerRow, keepKey, type MadeCa } from './ca-signer.ts'
import { issuerEntry } from './issuer-book.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { makeIntermediateWith, makeRootWith } from './make-issuer.ts'
import { custodyOf, keyHere, newKey, type NewKey } from './new-key.ts'
import { findOrMake } from './root-key.ts'
import { readRoot } from './sign-intermediate.ts'
import type { NewKeyPlace } from '#plane/keys/key-reference.ts'
import { keyId } from '#pki/keys.ts'
import type { Core } from '#plane/core/core.ts'

export type NewAuthority = {
  readonly domain: string
  readonly rootLifetimeMs: number
  /** 1 is what document 001 demands, and leaves no room for issuers with keys in memory. */
  readonly rootPathLen: 1 | 2
  /** Where the root's key goes instead of the data folder, unsealed, to be taken offline; or null. */
  readonly rootOut: string | null
  /** The reference of a key in a token or in Transit, which is the root's instead: made there, or there already; or null. */
  readonly rootKey?: string | null
  /** PEM of a root whose key was made elsewhere and stays there: only a request for the CA below it is made here; or null. */
  readonly rootCertificate?: string | null
  /** Where the key of the CA below the root is made; left out or null: it is sealed here. */
  readonly caKeyPlace?: NewKeyPlace | null
  readonly issuerKey: 'file' | 'memory'
  readonly intermediateLifetimeMs: number
}

export type CreatedAuthority = {
  readonly kind: 'created'
  readonly rows: readonly IssuerRow[]
  readonly entries: readonly [EntryDraft, ...EntryDraft[]]
  readonly rootFingerprint: string
  /** To be announced: the holder of this file is the domain. */
  readonly rootKeyFile: string | null
}

export const createAuthority = async (
  { clock, random }: Pick<Core, 'clock' | 'random'>,
  custody: KeyCustody,
  wanted: NewAuthority,
  by: Attribution,
): Promise<CreatedAuthority | Refusal> => {
  const { domain, rootOut, issuerKey, rootCertificate = null } = wanted
  if (rootCertificate !== null) return takeRoot(rootCertificate, wanted, by, clock.nowMs())
  if (issuerKey === 'memory' && wanted.rootPathLen === 1) {
    return refuse('SETTING_INVALID', 'a root of path length 1 leaves no room for issuers with keys in memory')
  }
  const making = { domain, nowMs: clock.nowMs(), random }
  const rootKey = await keyOfRoot(custody, wanted.rootKey ?? null)
  const root = await makeRootWith(rootKey, {
    ...making,
    custody: rootOut === null ? rootKey.custody : 'offline',
    lifetimeMs: wanted.rootLifetimeMs,
    pathLen: wanted.rootPathLen,
  })
  const role = issuerKey === 'memory' ? 'domain-ca' : 'issuing'
  const key = await newKey(wanted.caKeyPlace ?? null, role, { elsewhere: custody.elsewhere, random })
  const lifetimeMs = wanted.intermediateLifetimeMs
  const below = await makeIntermediateWith(key, role, root, { ...making, custody: key.custody, lifetimeMs })

  const rootKeyFile = rootOut === null ? null : carryOut(root, rootOut)
  if (typeof rootKeyFile === 'object' && rootKeyFile !== null) return rootKeyFile
  await keepKey(custody, root)
  await keepKey(custody, below)
  return {
    kind: 'created',
    rows: [root.row, below.row],
    entries: [
      issuerEntry('ca.created', root.row, by, making.nowMs, { path_length: wanted.rootPathLen }),
      issuerEntry('ca.created', below.row, by, making.nowMs, {}),
    ],
    rootFingerprint: root.certificate.sha256,
    rootKeyFile,
  }
}

const keyOfRoot = async ({ elsewhere }: KeyCustody, reference: string | null): Promise<NewKey> => {
  if (reference === null) return keyHere()
  const { key } = await findOrMake(reference, elsewhere)
  return { key, kept: `${key.reference}\n`, custody: custodyOf(key.reference) }
}

/** The ceremony makes what is below it. */
const takeRoot = (
  pem: string,
  { issuerKey }: NewAuthority,
  by: Attribution,
  nowMs: number,
): CreatedAuthority | Refusal => {
  const certificate = readRoot(pem, nowMs)
  if (certificate.kind === 'malformed') return refuse('SETTING_INVALID', `the root certificate: ${certificate.why}`)
  const needed = issuerKey === 'memory' ? 2 : 1
  if (certificate.pathLen !== null && certificate.pathLen < needed)
    return refuse('SETTING_INVALID', `the root's path length of ${certificate.pathLen} leaves no room below it`)
  const id = keyId(certificate.spki)
  if (certificate.subjectKeyId !== null && certificate.subjectKeyId.length !== 40)
    return refuse('SETTING_INVALID', 'the subject key identifier of the root does not have 20 bytes')
  const row = issuerRow(certificate, { role: 'root', custody: 'offline', parent: certificate.subjectKeyId ?? id })
  return {
    kind: 'created',
    rows: [row],
    entries: [issuerEntry('ca.created', row, by, nowMs, { path_length: certificate.pathLen, why: 'made elsewhere' })],
    rootFingerprint: certificate.sha256,
    rootKeyFile: null,
  }
}

/** The key's file, with the certificate beside it: both are needed to sign there. A root key is never overwritten. */
const carryOut = (root: MadeCa, folder: string): string | Refusal => {
  makeFolder(folder, 0o700)
  const keyFile = path.join(folder, 'root.key')
  if (createFile(keyFile, root.kept, 0o600) === 'exists') {
    return refuse('SETTING_INVALID', `${keyFile} is there already: choose a folder without a root`)
  }
  replaceFile(path.join(folder, 'root.crt'), toPem('CERTIFICATE', root.certificate.der), 0o644)
  return keyFile
}
