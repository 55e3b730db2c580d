// Why a store was not moved, copied or looked at, for whoever asked for it.

import { errno } from '#platform/files.ts'
import { SealRefused } from '#plane/keys/seal.ts'
import { StoreFault, StoreRefused, type StoreRefusedCode } from '#plane/store/contract/store-errors.ts'
import { TransferRefused, type TransferRefusedCode } from './transfer-errors.ts'

export type TransferRefusal = {
  readonly code: TransferRefusedCode | StoreRefusedCode | 'STORE_FAULT' | 'DISK_FULL' | 'NOT_PERMITTED'
  readonly detail: string
  readonly next: string
}

/** Null: it is nothing that could be expected. */
export const transferRefusal = (error: unknown): TransferRefusal | null => {
  if (error instanceof TransferRefused || error instanceof StoreRefused)
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
