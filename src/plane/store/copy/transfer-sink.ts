import type { ReadableStore } from './stored-records.ts'
import type { TransferRecord } from './transfer-record.ts'

/** An empty store that is being filled. Nobody sees anything of it before `commit`, and it can be read back before. */
export type TransferSink = ReadableStore & {
  /** Keys were given when it was opened; those among the records are passed over. */
  add(records: readonly TransferRecord[]): Promise<void>
  /** Durable when it resolves. */
  commit(): Promise<void>
  /** As if nothing had been tried. Does nothing after `commit`. */
  abandon(): Promise<void>
}
