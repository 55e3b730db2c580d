// What is checked of records as they go by, whether they come from a store or from a file: one domain, and a journal that is
// what was written. Equal stores give an equal hash.

import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { BaseRow, JournalRow } from '#plane/store/journal/journal-chain.ts'
import type { HeadSigner } from '#plane/store/contract/store.ts'
import { checkBase, startCheck, type Broken, type JournalCheck } from '#plane/store/journal/verify-journal.ts'
import { CopyRefused } from './copy-refusal.ts'
import { recordLine, startCount, type Counts, type RecordOf, type StoreRecord } from './store-record.ts'

/** A chain as far as it goes. */
export type ChainHead = { readonly chain: string; readonly sequence: number; readonly hash: string }

export type Content = {
  readonly domain: string
  readonly counts: Counts
  readonly heads: readonly ChainHead[]
  /** Over every record, in their order. */
  readonly sha256: string
}

export type Examiner = {
  /** Throws CopyRefused. */
  take(record: StoreRecord): void
  /** After the last. */
  end(): Content
}

export const startExamination = (signer: HeadSigner): Examiner => {
  const hash = createHash('sha256')
  const count = startCount()
  let domain: string | null = null
  let open: { readonly check: JournalCheck; head: ChainHead } | null = null
  const heads: ChainHead[] = []

  const endChain = (): void => {
    if (open === null) return
    refuseIf(open.head.chain, open.check.end(open.head.sequence))
    heads.push(open.head)
    open = null
  }

  const check = (one: StoreRecord): void => {
    switch (one.kind) {
      case 'chain': {
        endChain()
        const base = baseRow(one.record)
        refuseIf(base.chain, checkBase(signer, base))
        open = { check: startCheck(signer, base), head: one.record }
        return
      }
      case 'entry':
        if (open === null) throw broken('an entry belongs to no chain')
        refuseIf(open.head.chain, open.check.step(journalRow(one.record)))
        open.head = { chain: open.head.chain, sequence: one.record.entry, hash: one.record.hash }
        return
      case 'row':
        if (one.record.row === 'domain') domain = (one.record.value as { name: string }).name
        return
      case 'key':
      case 'hardware':
      case 'observation':
      case 'webhook':
        return
    }
  }

  return {
    take(record) {
      check(record)
      count.add(record)
      hash.update(recordLine(record)).update('\n')
    },
    end() {
      endChain()
      if (domain === null) throw new CopyRefused('NO_STORE', 'there is no domain in it', 'Name another store')
      return {
        domain,
        counts: count.counts(),
        heads: heads.map(({ chain, sequence, hash }) => ({ chain, sequence, hash })),
        sha256: hash.digest('hex'),
      }
    },
  }
}

export const baseRow = (record: RecordOf<'chain'>): BaseRow => ({
  chain: record.chain,
  domain: record.domain,
  sequence: record.sequence,
  hash: Buffer.from(record.hash, 'hex'),
  signature: Buffer.from(record.signature, 'base64url'),
  keyId: record.key_id,
})

/** The columns that only find an entry are made of it. */
export const journalRow = (record: RecordOf<'entry'>): JournalRow => {
  const { operation, node, type } = entryOf(record.bytes)
  return {
    sequence: record.entry,
    operation,
    bytes: record.bytes,
    hash: Buffer.from(record.hash, 'hex'),
    signature: record.signature === null ? null : Buffer.from(record.signature, 'base64url'),
    keyId: record.key_id,
    node,
    type,
  }
}

type Found = Pick<JournalRow, 'operation' | 'node' | 'type'>

const entryOf = (bytes: string): Found => {
  try {
    return JSON.parse(bytes) as Found
  } catch {
    throw broken('an entry is not readable')
  }
}

/** A chain that was cut at a signed head looks whole: the store's row of its end shows the loss. */
export const refuseOtherHeads = (found: readonly ChainHead[], recorded: readonly ChainHead[]): void => {
  const lost = recorded.find(({ chain, sequence, hash }) => {
    const head = found.find((one) => one.chain === chain)
    return head?.sequence !== sequence || head.hash !== hash
  })
  if (lost !== undefined) throw broken(`chain ${lost.chain} does not end at its entry ${lost.sequence}`)
}

const refuseIf = (chain: string, found: Broken | null): void => {
  if (found !== null) throw broken(`chain ${chain}: ${found.why}`)
}

const broken = (why: string): CopyRefused =>
  new CopyRefused(
    'JOURNAL_BROKEN',
    `the journal is not what was written: ${why}`,
    'Keep everything as it is, and compare with your last backup: muster journal verify',
  )
