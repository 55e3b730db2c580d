import type { RowKind, RowTypes } from '#domain/core/change.ts'
import { encodeRow, type EncodedRow } from '#plane/store/commit/row-tables.ts'
import { damaged } from './export-file.ts'
import type { RecordOf } from './transfer-record.ts'

/** A row ready to be written. Its columns are made of its document, as in any commit. */
export const documentRow = ({ row, value }: RecordOf<'row'>): EncodedRow => {
  try {
    const encoded = encodeRow(row, value as RowTypes[RowKind])
    if (typeof encoded.key === 'string' && !encoded.columns.includes(undefined as never)) return encoded
  } catch {
    // Something its key or a column is made of is missing.
  }
  throw damaged(`a ${row} in it is not one`)
}
