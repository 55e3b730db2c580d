// Where the authority's private keys are kept: sealed, one file each, in a folder that no other user may read; or, where several
// replicas share a store, in the store (shared-custody.ts). A key in memory custody is never given to it.

import * as path from 'node:path'
import type { IssuerRow } from '#domain/ca/issuer.ts'
import { errno, makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { createFile, namesIn } from '#platform/folder.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { nothingElsewhere, type KeysElsewhere } from './keys-elsewhere.ts'
import type { FoundSealingKey, SealingProtection } from './sealing-key.ts'

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
  'programs-root',
  'programs-issuing',
  'task-signer',
  'workers-issuing',
  'renewal-root',
  'issuer-secret',
] as const

export type KeyName = {
  /**
   * That of an authority in the store, or what else the key is for. `retired`: only for lists (authority/list-signer.ts). Keys of outside
   * issuers are never here.
   */
  readonly role: (typeof roles)[number] | IssuerRow['role']
  /** The key id; for a responder that of its issuer; for a server certificate its issuer and serial, joined by a dot; for a secret what its hash begins with. */
  readonly id: string
}

export type KeyCustody = {
  readonly protection: SealingProtection
  /** Where those keys are that do not leave a token. */
  readonly elsewhere: KeysElsewhere
  /**
   * Durable when it resolves. The text is PEM, a private key and what belongs to it; or a secret that is no key; or a reference to
   * a key that is elsewhere.
   */
  keep(name: KeyName, text: string): Promise<void>
  /** Null: it is not here. Throws where it is here and cannot be opened. */
  find(name: KeyName): string | null
  has(name: KeyName): boolean
  /** For good: only where a row says that it is over. */
  drop(name: KeyName): Promise<void>
  /**
   * What no row names leaves service and is kept: the row may be in a newer database that is put back. What this
   * process has made itself, and never committed, goes for good instead.
   */
  setAside(name: KeyName): Promise<void>
  /** Those that can be taken back. */
  asideNames(): readonly KeyName[]
  /** Back into service, where no key of that name is. */
  takeBack(name: KeyName): Promise<void>
  names(): readonly KeyName[]
  /** What other replicas have kept and dropped is seen from here on. */
  refresh(): Promise<void>
}

const id = '[0-9a-f]+(?:\\.[0-9a-f]+)?'
const fileShape = new RegExp(`^(${roles.join('|')})\\.(${id})\\.key$`)
const sealedShape = new RegExp(`^(${roles.join('|')})/(${id})$`)

const nameFrom = (parts: RegExpExecArray | null): KeyName | null =>
  parts === null ? null : { role: parts[1] as KeyName['role'], id: parts[2] as string }

/** What a key is sealed under, and called where several replicas share it. */
export const sealedNameOf = ({ role, id: of }: KeyName): string => `${role}/${of}`

/** Null: not the name of a key. */
export const keyNameOfSealed = (sealedName: string): KeyName | null => nameFrom(sealedShape.exec(sealedName))

export const openKeyCustody = (
  folder: string,
  sealing: FoundSealingKey,
  elsewhere: KeysElsewhere = nothingElsewhere,
): KeyCustody => {
  makeFolder(folder, 0o700)
  const fileOf = (name: KeyName): string => path.join(folder, `${name.role}.${name.id}.key`)
  const aside = path.join(folder, 'set-aside')
  const asideOf = (name: KeyName): string => path.join(aside, path.basename(fileOf(name)))
  const namesOf = (place: string): readonly KeyName[] =>
    namesIn(place).flatMap((file) => nameFrom(fileShape.exec(file)) ?? [])
  const names = (): readonly KeyName[] => namesOf(folder)
  const made = new Set<string>()
  // The copy is durable before the original goes; a crash in between leaves both, which is the same key twice.
  const move = (from: string, to: string): void => {
    const sealed = readFileIfAny(from)
    if (sealed === null) return
    if (createFile(to, sealed, 0o600) === 'exists' && readFileIfAny(to) !== sealed) {
      throw new Error(`another key than ${from} is in ${to} already`)
    }
    removeFile(from)
  }

  return {
    protection: sealing.protection,
    elsewhere,
    async keep(name, text) {
      replaceFile(fileOf(name), sealing.key.seal(sealedNameOf(name), text), 0o600)
      made.add(sealedNameOf(name))
    },
    find(name) {
      const sealed = readFileIfAny(fileOf(name))
      return sealed === null ? null : sealing.key.unseal(sealedNameOf(name), sealed)
    },
    has: (name) => names().some((one) => sealedNameOf(one) === sealedNameOf(name)),
    drop: async (name) => removeFile(fileOf(name)),
    async setAside(name) {
      if (made.has(sealedNameOf(name))) return removeFile(fileOf(name))
      makeFolder(aside, 0o700)
      move(fileOf(name), asideOf(name))
    },
    asideNames: () => namesOf(aside),
    async takeBack(name) {
      if (readFileIfAny(fileOf(name)) === null) move(asideOf(name), fileOf(name))
    },
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
