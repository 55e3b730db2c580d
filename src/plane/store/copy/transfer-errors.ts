// Why a store is not moved, copied or looked at.

export type TransferRefusedCode =
  /** The file is not an export that this release reads. */
  | 'EXPORT_UNKNOWN'
  /** It was one: cut off, altered, or contradicting itself. */
  | 'EXPORT_DAMAGED'
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
  | 'SEVERAL_CHAINS'
  | 'JOURNAL_BROKEN'
  | 'STORE_DAMAGED'
  | 'STOPPED'
  | 'NOT_FOR_POSTGRES'

/** Nothing was changed, and trying again as it is changes nothing. */
export class TransferRefused extends Error {
  readonly code: TransferRefusedCode
  /** What the operator does about it. */
  readonly next: string

  constructor(code: TransferRefusedCode, message: string, next: string) {
    super(message)
    this.name = 'TransferRefused'
    this.code = code
    this.next = next
  }
}
export const damagedStore = (why: string): TransferRefused =>
  new TransferRefused(
    'STORE_DAMAGED',
    `the store is damaged: ${why}`,
    'Keep a copy of it as evidence and restore the last good backup',
  )
