// Where the authority's private keys lie: sealed, one file each, in a folder nobody else may read. A key in memory
// custody is simply never given to it.

import * as path from 'node:path'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import type { FoundSealingKey } from './sealing-key.ts'

const roles = [
  'root',
  'domain-ca',
  'issuing',
  'server',
  'request',
  'recovery',
  'recovery-server',
  'statement',
  'bearer',
] as const

export type KeyName = {
  readonly role: (typeof roles)[number]
  /** The key id; for a server certificate its issuer and serial, joined by a dot; for a secret what its hash begins with. */
  readonly id: string
}

export type KeyCustody = {
  /** Unprotected: the sealing key lies beside what it seals, or others may read it. */
  readonly protection: 'protected' | 'unprotected'
  /** Durable when it returns. The text is PEM, a private key and what belongs to it; or a secret that is no key. */
  keep(name: KeyName, text: string): void
  /** Null: it is not here. Throws where it is here and cannot be opened. */
  find(name: KeyName): string | null
  has(name: KeyName): boolean
  drop(name: KeyName): void
  names(): readonly KeyName[]
}

const fileShape = new RegExp(`^(${roles.join('|')})\\.([0-9a-f]+(?:\\.[0-9a-f]+)?)\\.key$`)

export const openKeyCustody = (folder: string, sealing: FoundSealingKey): KeyCustody => {
  makeFolder(folder, 0o700)
  const fileOf = ({ role, id }: KeyName): string => path.join(folder, `${role}.${id}.key`)
  const sealedName = ({ role, id }: KeyName): string => `${role}/${id}`
  const names = (): readonly KeyName[] =>
    namesIn(folder).flatMap((file) => {
      const parts = fileShape.exec(file)
      return parts === null ? [] : [{ role: parts[1] as KeyName['role'], id: parts[2] as string }]
    })

  return {
    protection: sealing.protection,
    keep: (name, text) => replaceFile(fileOf(name), sealing.key.seal(sealedName(name), text), 0o600),
    find(name) {
      const sealed = readFileIfAny(fileOf(name))
      return sealed === null ? null : sealing.key.unseal(sealedName(name), sealed)
    },
    has: (name) => names().some(({ role, id }) => role === name.role && id === name.id),
    drop: (name) => removeFile(fileOf(name)),
    names,
  }
}
