// What this host has learned from statements, and which statement keys it has pinned: one file in the helper's folder. The keys come
// from a file of root's once; afterwards they change by a statement under a pinned key, or when root changes that file.

import * as path from 'node:path'
import { Type } from 'typebox'
import { Check } from 'typebox/value'
import { sha256Hex } from '#platform/bytes.ts'
import { replaceFile } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { keyTypeOfSpki } from '#pki/keys.ts'
import { allFromPem } from '#pki/pem.ts'
import { orNull } from '#wire/core/shapes.ts'
import { mostStatementKeys } from '#wire/core/task-statements.ts'
import type { StatementMemory } from './judge-statement.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

export type Pinned = {
  /** SubjectPublicKeyInfo, DER, base64. */
  readonly pinned: readonly string[]
  /** SHA-256 of root's file when they were pinned. */
  readonly pinnedFile: string
  readonly memory: StatementMemory | null
  readonly forgottenUntilMs: number
}

const Stored = Type.Object({
  version: Type.Literal(1),
  pinned: Type.Array(Type.String(), { minItems: 1 }),
  pinnedFile: Type.String(),
  forgottenUntilMs: Type.Number(),
  memory: orNull(
    Type.Object({
      number: Type.Integer(),
      epoch: Type.Integer(),
      issuedMs: Type.Number(),
      statement: orNull(
        Type.Object({
          digest: Type.String(),
          issuedMs: Type.Number(),
          expiresMs: Type.Number(),
          verifiers: Type.Array(Type.Object({ key: Type.String(), spki: Type.String() })),
          withdrawn: Type.Array(Type.String()),
        }),
      ),
    }),
  ),
})

const longestFile = 64 * 1024

export type StatementFile = {
  /** With the keys of root's file where that has changed since. */
  now(statementKeys: string): Pinned | TaskRefusal
  /** Durable when it returns. Throws what the disk throws. */
  keep(pinned: Pinned): void
}

export const openStatementFile = (folder: string, trust: Trust): StatementFile => {
  const file = path.join(folder, 'statement.json')
  const kept = (): Pinned | null | TaskRefusal => {
    if (!pathExists(file)) return null
    const read = readTrustedFile(file, trust, longestFile)
    const stored = 'fault' in read ? null : storedIn(read.text)
    if (stored !== null) return stored
    const why =
      'fault' in read ? read.fault : `${file} is damaged; without it only a statement with a new nonce is taken`
    return refuseTask('NOT_DONE', why)
  }
  return {
    now: (statementKeys) => {
      const before = kept()
      if (before !== null && 'fault' in before) return before
      const read = readTrustedFile(statementKeys, trust, longestFile)
      if ('fault' in read) return refuseTask('NOT_DONE', `No task is taken without statement keys: ${read.fault}`)
      const pinnedFile = sha256Hex(read.text)
      if (before?.pinnedFile === pinnedFile) return before
      const keys = keysIn(read.text)
      if (keys === null)
        return refuseTask('NOT_DONE', `${statementKeys} is not a list of 1 to ${mostStatementKeys} public keys in PEM`)
      // What the keys before have signed is believed no longer; that something newer was seen still counts.
      const memory = before === null || before.memory === null ? null : { ...before.memory, statement: null }
      return { pinned: keys, pinnedFile, memory, forgottenUntilMs: before?.forgottenUntilMs ?? 0 }
    },
    keep: (pinned) => replaceFile(file, JSON.stringify({ version: 1, ...pinned }) + '\n', 0o600),
  }
}

/** Base64; null: not public keys of kinds that sign statements. */
export const keysIn = (pem: string): readonly string[] | null => {
  const keys = allFromPem('PUBLIC KEY', pem)
  if (keys === null || keys.length > mostStatementKeys) return null
  return keys.every((der) => keyTypeOfSpki(der) !== null)
    ? keys.map((der) => Buffer.from(der).toString('base64'))
    : null
}

const storedIn = (text: string): Pinned | null => {
  try {
    const value: unknown = JSON.parse(text)
    return Check(Stored, value) ? value : null
  } catch {
    return null
  }
}
