// A domain out of its file into an empty store. The file is read to its end before anything is touched, and what was
// written is read back and compared before it counts.

import { createHash } from 'node:crypto'
import { pathExists } from '#platform/paths.ts'
import { startExamination, type ChainHead, type Examiner } from './examine.ts'
import { damaged, endIsSigned, readExport, type ExportHeader } from './export-file.ts'
import { storedRecords } from './stored-records.ts'
import { TransferRefused } from './transfer-errors.ts'
import { recordLine, totalOf, type Counts, type TransferRecord } from './transfer-record.ts'
import type { TransferSink } from './transfer-sink.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { givenSealingKey, openSealedKeys } from './transfer-keys.ts'
import { startSteps, type TransferRun } from './transfer-run.ts'
import { newestSchemas, openSink } from './transfer-store.ts'

export type Imported = {
  readonly domain: string
  readonly counts: Counts
  readonly heads: readonly ChainHead[]
}

const batchSize = 500
/** A domain has a handful; a file that claims more is none of ours. */
const mostKeys = 10_000

/** `onlyDomain`: refuse a file of any other. Throws TransferRefused or StoreRefused; then the store is as it was. */
export const importStore = async (
  config: PlaneConfig,
  file: string,
  onlyDomain: string | null,
  run: TransferRun,
): Promise<Imported> => {
  const checked = await checkExport(config, file, onlyDomain, run)
  const sink = await openSink(config, checked.keys)
  try {
    const written = await fill(sink, file, checked, run)
    await compareWithStored(sink, checked, written, run)
    await sink.commit()
  } catch (error) {
    await sink.abandon()
    throw error
  }
  return { domain: checked.header.domain, counts: checked.header.counts, heads: checked.heads }
}

type Checked = {
  readonly header: ExportHeader
  readonly keys: ReadonlyMap<string, string>
  readonly signer: HeadSigner
  readonly heads: readonly ChainHead[]
  readonly sha256: string
}

const checkExport = async (
  config: PlaneConfig,
  file: string,
  onlyDomain: string | null,
  run: TransferRun,
): Promise<Checked> => {
  if (!pathExists(file)) throw new TransferRefused('FILE_UNUSABLE', `there is no file ${file}`, 'Name an export')
  const sealing = givenSealingKey(config)
  const keys = new Map<string, string>()
  let step = async (): Promise<void> => {}
  let header: ExportHeader | null = null
  let checked: Checked | null = null
  let opened: { readonly signer: HeadSigner; readonly examiner: Examiner } | null = null
  for (const part of readExport(file)) {
    switch (part.kind) {
      case 'header':
        header = part.header
        refuseHeader(header, config, onlyDomain)
        step = startSteps(run, 'checking the file', totalOf(header.counts))
        break
      case 'key':
        if (keys.size >= mostKeys || opened !== null) throw damaged('its keys are not where they belong')
        keys.set(part.record.key, part.record.sealed)
        await step()
        break
      case 'end': {
        if (header === null || opened === null) throw damaged('there is nothing in it')
        if (!endIsSigned(part.end, opened.signer)) throw damaged('its end is not signed by the key of this domain')
        const { domain, heads } = opened.examiner.end()
        if (domain !== header.domain) throw damaged('its domain is not the one it says')
        checked = { header, keys, signer: opened.signer, heads, sha256: part.end.sha256 }
        break
      }
      default:
        opened ??= openWith(openSealedKeys(sealing.key, keys))
        opened.examiner.take(part)
        await step()
    }
  }
  if (checked === null) throw damaged('its end is missing')
  return checked
}

const openWith = (signer: HeadSigner) => ({ signer, examiner: startExamination(signer) })

const refuseHeader = (header: ExportHeader, config: PlaneConfig, onlyDomain: string | null): void => {
  if (onlyDomain !== null && header.domain !== onlyDomain)
    throw new TransferRefused(
      'OTHER_DOMAIN',
      `the export is of the domain ${header.domain}, not of ${onlyDomain}`,
      'Name the export of that domain, or leave out --domain',
    )
  const newest = newestSchemas[header.store]
  if (header.schema !== newest)
    throw new TransferRefused(
      'EXPORT_UNKNOWN',
      `the export was made by release ${header.release} of a store with schema ${header.schema}; this release knows schema ${newest}`,
      'Import it with the release that made it, and upgrade afterwards: muster store migrate',
    )
  if (config.store.kind === 'sqlite' && header.counts.chain > 1)
    throw new TransferRefused(
      'SEVERAL_CHAINS',
      `the journal has ${header.counts.chain} chains, one for each plane that ran at once, and SQLite keeps one: joining them would mean signing anew what has happened`,
      'Import it into PostgreSQL: --store postgres',
    )
}

/** Returns a hash over all records as they were given to the sink. */
const fill = async (sink: TransferSink, file: string, checked: Checked, run: TransferRun): Promise<string> => {
  const step = startSteps(run, 'writing', totalOf(checked.header.counts))
  const hash = createHash('sha256')
  let batch: TransferRecord[] = []
  for (const part of readExport(file)) {
    if (part.kind === 'header') continue
    if (part.kind === 'end') {
      // It is read a second time, and somebody may have written to it in between.
      if (part.end.sha256 !== checked.sha256) throw damaged('it changed while it was read')
      continue
    }
    hash.update(recordLine(part)).update('\n')
    batch.push(part)
    if (batch.length >= batchSize) {
      await sink.add(batch)
      batch = []
    }
    await step()
  }
  await sink.add(batch)
  return hash.digest('hex')
}

/** Whatever the database made of it, it has to give back what it was given, byte by byte, with a journal that verifies. */
const compareWithStored = async (
  sink: TransferSink,
  checked: Checked,
  written: string,
  run: TransferRun,
): Promise<void> => {
  const step = startSteps(run, 'reading it back', totalOf(checked.header.counts))
  const hash = createHash('sha256')
  const examiner = startExamination(checked.signer)
  for await (const record of storedRecords(sink)) {
    examiner.take(record)
    hash.update(recordLine(record)).update('\n')
    await step()
  }
  examiner.end()
  if (hash.digest('hex') !== written) throw new Error('what was written is not what is read back; nothing was kept')
}
