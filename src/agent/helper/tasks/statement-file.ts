// What this host has learned from statements, and which statement keys it has pinned: one file in the helper's folder. The keys come
// from a file of root's once; afterwards they change by a statement under a pinned key, or when root changes that file.

import * as path from 'node:path'
import { Type } from 'typebox'
import { sha256Hex } from '#platform/bytes.ts'
import { replaceFile } from '#platform/files.ts'
import { pathExists } from '#platform/paths.ts'
import { readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { keyTypeOfSpki } from '#pki/keys.ts'
import { allFromPem } from '#pki/pem.ts'
import { orNull } from '#wire/core/shapes.ts'
import { mostStatementKeys } from '#wire/core/task-statements.ts'
import type { StatementMemory, ThisNode } from './judge-statement.ts'
import { refuseTask, type TaskRefusal } from './task-verbs.ts'

export type Pinned = {
  /** Whose statements were believed. */
  readonly node: ThisNode
  /** SubjectPublicKeyInfo, DER, base64. */
  readonly pinned: readonly string[]
  /** SHA-256 of root's file when they were pinned. */
  readonly pinnedFile: string
  readonly memory: StatementMemory | null
  readonly forgottenUntilMs: number
  /** It was that late at least when this was written, so that a helper that starts anew does not begin to count again. */
  readonly floorMs: number
}

const Stored = Type.Object({
  version: Type.Literal(1),
  node: Type.Object({ domain: Type.String(), id: Type.String() }),
  pinned: Type.Array(Type.String(), { minItems: 1 }),
  pinnedFile: Type.String(),
  forgottenUntilMs: Type.Number(),
  floorMs: Type.Number(),
  memory: orNull(
    Type.Object({
      number: Type.Integer(),
      epoch: Type.Integer(),
      issuedMs: Type.Number(),
      rememberedSinceMs: Type.Number(),
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
  /**
   * With the keys of root's file where that has changed since. What was learned as another node, or from keys of which root's new file has
   * none, is given up: its number and epoch say nothing here, and may be a thief's.
   */
  now(statementKeys: string, node: ThisNode): Pinned | TaskRefusal
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
    now: (statementKeys, node) => {
      const found = kept()
      if (found !== null && 'fault' in found) return found
      const before = found === null ? null : asNode(found, node)
      const read = readTrustedFile(statementKeys, trust, longestFile)
      if ('fault' in read) return refuseTask('KEYS_UNREADABLE', `No statement keys (muster agent trust): ${read.fault}`)
      const pinnedFile = sha256Hex(read.text)
      if (before?.pinnedFile === pinnedFile) return before
      const keys = keysIn(read.text)
      if (keys === null)
        return refuseTask(
          'KEYS_UNREADABLE',
          `${statementKeys} is not a list of 1 to ${mostStatementKeys} public keys in PEM (muster agent trust)`,
        )
      // What the keys before have signed is believed no longer; that something newer was seen counts as long as one of them stays.
      const stays = before !== null && keys.some((key) => before.pinned.includes(key))
      const memory = !stays || before.memory === null ? null : { ...before.memory, statement: null }
      return {
        node,
        pinned: keys,
        pinnedFile,
        memory,
        forgottenUntilMs: before?.forgottenUntilMs ?? 0,
        floorMs: stays ? before.floorMs : 0,
      }
    },
    keep: (pinned) => replaceFile(file, JSON.stringify({ version: 1, ...pinned }) + '\n', 0o600),
  }
}

/** Root has given the host another identity: only that no id is given up twice still counts. */
const asNode = (pinned: Pinned, node: ThisNode): Pinned =>
  pinned.node.domain === node.domain && pinned.node.id === node.id
    ? pinned
    : { ...pinned, node: { domain: node.domain, id: node.id }, memory: null, floorMs: 0 }

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
    return matchesSchema(Stored, value) ? value : null
  } catch {
    return null
  }
}
