// A whole domain into one file, while no plane runs on its store.

import * as path from 'node:path'
import { isoTime, type Clock } from '#platform/clock.ts'
import { newLineFile } from '#platform/line-file.ts'
import { pathExists } from '#platform/paths.ts'
import { musterVersion } from '#platform/this-process.ts'
import { startExamination, type ChainHead, type Examiner } from './examine.ts'
import { writeExport } from './export-file.ts'
import { countStored, recordedHeads, storedRecords, type ReadableStore } from './stored-records.ts'
import { TransferRefused } from './transfer-errors.ts'
import { totalOf, type Counts, type TransferRecord } from './transfer-record.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { givenSealingKey, openSealedKeys } from './transfer-keys.ts'
import { startSteps, type TransferRun } from './transfer-run.ts'
import { openSource } from './transfer-store.ts'

export type Exported = {
  readonly domain: string
  readonly counts: Counts
  readonly heads: readonly ChainHead[]
  readonly sha256: string
  /** Not in the file; without it nobody can use what is. */
  readonly sealingKeyFile: string
}

/** Throws TransferRefused or StoreRefused; then there is no file. */
export const exportStore = async (
  config: PlaneConfig,
  file: string,
  deps: TransferRun & { readonly clock: Clock },
): Promise<Exported> => {
  refuseFile(file)
  const sealing = givenSealingKey(config)
  const source = await openSource(config)
  try {
    const signer = openSealedKeys(sealing.key, await source.keys())
    const counts = await countStored(source)
    const header = {
      domain: await domainIn(source),
      store: source.dialect.store,
      schema: source.schema,
      release: musterVersion,
      made_at: isoTime(deps.clock.nowMs()),
      counts,
    }
    const lines = newLineFile(file)
    try {
      const examiner = startExamination(signer)
      const records = examined(storedRecords(source), examiner, startSteps(deps, 'exporting', totalOf(counts)))
      const sha256 = await writeExport(lines, header, records, signer)
      const { domain, heads } = examiner.end()
      refuseOtherHeads(heads, await recordedHeads(source))
      if (lines.finish() === 'exists') throw exists(file)
      return { domain, counts, heads, sha256, sealingKeyFile: sealing.file }
    } catch (error) {
      lines.abandon()
      throw error
    }
  } finally {
    await source.close()
  }
}

/** The same records, checked as they go by. */
async function* examined(
  records: AsyncIterable<TransferRecord>,
  examiner: Examiner,
  step: () => Promise<void>,
): AsyncGenerator<TransferRecord, void, void> {
  for await (const record of records) {
    examiner.take(record)
    yield record
    await step()
  }
}

const domainIn = async (store: ReadableStore): Promise<string> => {
  const [row] = await store.query('SELECT doc FROM domain', [])
  if (row === undefined)
    throw new TransferRefused('NO_STORE', 'the store holds no domain yet', 'Start a plane on it first: muster plane')
  return (JSON.parse(String(row['doc'])) as { name: string }).name
}

/** Entries that were cut off at a signed head look whole by themselves. */
const refuseOtherHeads = (found: readonly ChainHead[], recorded: readonly ChainHead[] | null): void => {
  const lost = recorded?.find(({ chain, sequence, hash }) => {
    const head = found.find((one) => one.chain === chain)
    return head?.sequence !== sequence || head.hash !== hash
  })
  if (lost !== undefined)
    throw new TransferRefused(
      'JOURNAL_BROKEN',
      `the journal is not what was written: chain ${lost.chain} does not end at its entry ${lost.sequence}`,
      'Keep everything as it is, and compare with your last export: muster journal verify',
    )
}

const refuseFile = (file: string): void => {
  if (pathExists(file)) throw exists(file)
  if (!pathExists(path.dirname(path.resolve(file))))
    throw new TransferRefused('FILE_UNUSABLE', `there is no folder ${path.dirname(file)}`, 'Make it, or name another')
}

const exists = (file: string): TransferRefused =>
  new TransferRefused('FILE_EXISTS', `${file} exists`, 'Name a file that does not exist: nothing is overwritten')
