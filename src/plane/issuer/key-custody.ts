// Where the authority's private keys lie: sealed, one file each, in a folder nobody else may read; or, where several
// planes share a store, in there (shared-custody.ts). A key in memory custody is simply never given to it.

import * as path from 'node:path'
import { errno, makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import type { Store } from '#plane/store/store.ts'
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
  'responder',
  'retired',
] as const

export type KeyName = {
  /** That of an authority on record, or what else the key is for. `retired`: only for lists (list-signer.ts). */
  readonly role: (typeof roles)[number]
  /** The key id; for a responder that of its issuer; for a server certificate its issuer and serial, joined by a dot; for a secret what its hash begins with. */
  readonly id: string
}

export type KeyCustody = {
  /** Unprotected: the sealing key lies beside what it seals, or others may read it. */
  readonly protection: 'protected' | 'unprotected'
  /** Durable when it resolves. The text is PEM, a private key and what belongs to it; or a secret that is no key. */
  keep(name: KeyName, text: string): Promise<void>
  /** Null: it is not here. Throws where it is here and cannot be opened. */
  find(name: KeyName): string | null
  has(name: KeyName): boolean
  drop(name: KeyName): Promise<void>
  names(): readonly KeyName[]
  /** What other planes have kept and dropped is seen from here on. */
  refresh(): Promise<void>
}

const id = '[0-9a-f]+(?:\\.[0-9a-f]+)?'
const fileShape = new RegExp(`^(${roles.join('|')})\\.(${id})\\.key$`)
const sealedShape = new RegExp(`^(${roles.join('|')})/(${id})$`)

const nameFrom = (parts: RegExpExecArray | null): KeyName | null =>
  parts === null ? null : { role: parts[1] as KeyName['role'], id: parts[2] as string }

/** What a key is sealed under, and called where several planes share it. */
export const sealedNameOf = ({ role, id: of }: KeyName): string => `${role}/${of}`

/** Null: not the name of a key. */
export const keyNameOfSealed = (sealedName: string): KeyName | null => nameFrom(sealedShape.exec(sealedName))

export const openKeyCustody = (folder: string, sealing: FoundSealingKey): KeyCustody => {
  makeFolder(folder, 0o700)
  const fileOf = (name: KeyName): string => path.join(folder, `${name.role}.${name.id}.key`)
  const names = (): readonly KeyName[] => namesIn(folder).flatMap((file) => nameFrom(fileShape.exec(file)) ?? [])

  return {
    protection: sealing.protection,
    keep: async (name, text) => replaceFile(fileOf(name), sealing.key.seal(sealedNameOf(name), text), 0o600),
    find(name) {
      const sealed = readFileIfAny(fileOf(name))
      return sealed === null ? null : sealing.key.unseal(sealedNameOf(name), sealed)
    },
    has: (name) => names().some((one) => sealedNameOf(one) === sealedNameOf(name)),
    drop: async (name) => removeFile(fileOf(name)),
    names,
    // They are looked for on the disk each time.
    refresh: async () => {},
  }
}

/** The files that a cut-off needs are written in the reserve of the store's disk where that is full, as its commit is. */
export const withRoom = async (store: Pick<Store, 'makeRoom'>, write: () => Promise<void>): Promise<void> => {
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (!['ENOSPC', 'EDQUOT'].includes(errno(error) ?? '') || !store.makeRoom()) throw error
    }
  }
}
