// What a copy of a store holds: written beside it, and signed with the key of journal heads, so that what was altered or left
// out on the way is found out, and so that the copy can be shown to be what was copied.

import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/schema'
import { isoTime } from '#platform/clock.ts'
import { readFileIfAny, replaceFile } from '#platform/files.ts'
import { musterVersion } from '#platform/this-process.ts'
import { recordOf } from '#platform/json-schema.ts'
import { canonicalJson } from '#plane/store/journal/canonical-json.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import { damagedBackup } from './copy-refusal.ts'
import type { ChainHead, Content } from './examine.ts'
import { countLabels, countsDiffer, type Counts } from './store-record.ts'

const strict = { additionalProperties: false }
const Whole = Type.Integer({ minimum: 0 })
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })

const ManifestSchema = Type.Object(
  {
    muster: Type.Literal('store manifest'),
    format: Type.Literal(1),
    domain: Type.String({ minLength: 1, maxLength: 253 }),
    release: Type.String(),
    made_at: Type.String(),
    counts: recordOf(Type.String(), Whole),
    heads: Type.Array(Type.Object({ chain: Type.String(), sequence: Whole, hash: Hash }, strict)),
    /** Over every record of the store, in the order in which they are read. */
    sha256: Hash,
    key_id: Type.String(),
    signature: Type.String({ pattern: '^[A-Za-z0-9_-]{1,1000}$' }),
  },
  strict,
)
export type Manifest = Static<typeof ManifestSchema>
const check = Compile(ManifestSchema)

export const manifestName = 'manifest.json'

const signedBytes = ({ signature: _signature, ...manifest }: Manifest): Uint8Array =>
  Buffer.from(canonicalJson({ ...manifest, purpose: 'muster store manifest' }), 'utf8')

export const makeManifest = (content: Content, signer: HeadSigner, nowMs: number): Manifest => {
  const unsigned: Manifest = {
    muster: 'store manifest',
    format: 1,
    domain: content.domain,
    release: musterVersion,
    made_at: isoTime(nowMs),
    counts: content.counts,
    heads: content.heads.map(({ chain, sequence, hash }) => ({ chain, sequence, hash })),
    sha256: content.sha256,
    key_id: signer.keyId,
    signature: '',
  }
  return { ...unsigned, signature: Buffer.from(signer.sign(signedBytes(unsigned))).toString('base64url') }
}

export const manifestText = (manifest: Manifest): string => `${JSON.stringify(manifest, null, 2)}\n`

export const writeManifest = (folder: string, manifest: Manifest): void =>
  replaceFile(path.join(folder, manifestName), manifestText(manifest), 0o600)

/** Null: there is none. Throws CopyRefused where it is not readable. Its signature is checked with the content. */
export const readManifest = (folder: string): Manifest | null => {
  const text = readFileIfAny(path.join(folder, manifestName))
  if (text === null) return null
  const value = parsed(text)
  if (!check.Check(value)) throw damagedBackup(`${manifestName} is not readable`)
  return value
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Throws CopyRefused where the content is not the one that was signed. */
export const refuseOtherContent = (manifest: Manifest, content: Content, signer: HeadSigner): void => {
  const signature = Buffer.from(manifest.signature, 'base64url')
  if (manifest.key_id !== signer.keyId || !signer.verify(signedBytes(manifest), signature))
    throw damagedBackup(`${manifestName} is not signed by the key of this domain`)
  const counts = Object.fromEntries(countLabels.map((label) => [label, manifest.counts[label] ?? 0])) as Counts
  const differs = countsDiffer(counts, content.counts)
  if (differs !== null) throw damagedBackup(`it has ${differs}`)
  if (!sameHeads(manifest.heads, content.heads) || manifest.sha256 !== content.sha256)
    throw damagedBackup(`what is in it is not what ${manifestName} says`)
}

const sameHeads = (one: readonly ChainHead[], other: readonly ChainHead[]): boolean =>
  JSON.stringify(one.map(({ chain, sequence, hash }) => [chain, sequence, hash])) ===
  JSON.stringify(other.map(({ chain, sequence, hash }) => [chain, sequence, hash]))
