// Why a store is not copied, backed up, restored or looked at.

import { errno } from '#platform/files.ts'
import { SealRefused } from '#plane/keys/seal.ts'
import { StoreFault, StoreRefused, type StoreRefusedCode } from '#plane/store/contract/store-errors.ts'

export type CopyRefusedCode =
  /** It is neither a backup nor an export that this release reads. */
  | 'BACKUP_UNKNOWN'
  /** It was one: cut off, altered, or contradicting itself. */
  | 'BACKUP_DAMAGED'
  | 'FILE_EXISTS'
  | 'FILE_UNUSABLE'
  | 'NO_STORE'
  | 'STORE_IN_USE'
  | 'STORE_NOT_EMPTY'
  | 'SCHEMA_OLD'
  | 'SEALING_KEY_MISSING'
  | 'SEALING_KEY_WRONG'
  | 'KEY_MISSING'
  | 'OTHER_DOMAIN'
  | 'JOURNAL_BROKEN'
  | 'STORE_DAMAGED'
  | 'STOPPED'
  | 'UPGRADE_UNFINISHED'

/** Nothing was changed, and trying again as it is changes nothing. */
export class CopyRefused extends Error {
  readonly code: CopyRefusedCode
  /** What the operator does about it. */
  readonly next: string

  constructor(code: CopyRefusedCode, message: string, next: string) {
    super(message)
    this.name = 'CopyRefused'
    this.code = code
    this.next = next
  }
}

export const damagedStore = (why: string): CopyRefused =>
  new CopyRefused(
    'STORE_DAMAGED',
    `the store is damaged: ${why}`,
    'Keep a copy of it as evidence and restore the last good backup',
  )

export const damagedBackup = (why: string): CopyRefused =>
  new CopyRefused('BACKUP_DAMAGED', `the backup is damaged: ${why}`, 'Copy it again from where it came, or use another')

export type CopyRefusal = {
  readonly code: CopyRefusedCode | StoreRefusedCode | 'STORE_FAULT' | 'DISK_FULL' | 'NOT_PERMITTED'
  readonly detail: string
  readonly next: string
}

/** The refusal for an expected error; null: the error is unexpected. */
export const copyRefusal = (error: unknown): CopyRefusal | null => {
  if (error instanceof CopyRefused || error instanceof StoreRefused)
    return { code: error.code, detail: error.message, next: error.next }
  if (error instanceof SealRefused)
    return { code: 'SEALING_KEY_WRONG', detail: error.message, next: 'Give the one the domain has: --seal-key FILE' }
  if (!(error instanceof Error)) return null
  if (error instanceof StoreFault)
    return { code: 'STORE_FAULT', detail: error.message, next: 'See that it runs and can be reached, and try again' }
  switch (errno(error)) {
    case 'EISDIR':
      return { code: 'FILE_UNUSABLE', detail: error.message, next: 'Name a file: this is a folder' }
    case 'ENOSPC':
    case 'EDQUOT':
      return { code: 'DISK_FULL', detail: error.message, next: 'Make room there, or name a place on another disk' }
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return { code: 'NOT_PERMITTED', detail: error.message, next: 'Run this as the user the plane runs as' }
    default:
      return null
  }
}
