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
import { keepKey, type MadeCa } from './ca-signer.ts'
import { issuerEntry } from './issuer-book.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { makeIntermediate, makeRoot } from './make-issuer.ts'
import type { Core } from '#plane/core/core.ts'

export type NewAuthority = {
  readonly domain: string
  readonly rootLifetimeMs: number
  /** 1 is what document 001 demands, and leaves no room for issuers with keys in memory. */
  readonly rootPathLen: 1 | 2
  /** Where the root's key goes instead of the data folder, unsealed, to be taken offline; or null. */
  readonly rootOut: string | null
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
  const { domain, rootOut, issuerKey } = wanted
  if (issuerKey === 'memory' && wanted.rootPathLen === 1) {
    return refuse('SETTING_INVALID', 'a root of path length 1 leaves no room for issuers with keys in memory')
  }
  const making = { domain, nowMs: clock.nowMs(), random }
  const root = makeRoot({
    ...making,
    custody: rootOut === null ? 'file' : 'offline',
    lifetimeMs: wanted.rootLifetimeMs,
    pathLen: wanted.rootPathLen,
  })
  const below = makeIntermediate(issuerKey === 'memory' ? 'domain-ca' : 'issuing', root, {
    ...making,
    custody: 'file',
    lifetimeMs: wanted.intermediateLifetimeMs,
  })

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

/** The key's file, with the certificate beside it: both are needed to sign there. A root key is never overwritten. */
const carryOut = (root: MadeCa, folder: string): string | Refusal => {
  makeFolder(folder, 0o700)
  const keyFile = path.join(folder, 'root.key')
  if (createFile(keyFile, root.key.pkcs8Pem(), 0o600) === 'exists') {
    return refuse('SETTING_INVALID', `${keyFile} is there already: choose a folder without a root`)
  }
  replaceFile(path.join(folder, 'root.crt'), toPem('CERTIFICATE', root.certificate.der), 0o644)
  return keyFile
}
