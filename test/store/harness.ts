// A real store on a folder of its own, and rows to put into it.

import { generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import type { TestContext } from 'node:test'
import type { CertificateRow } from '#domain/core/certificate.ts'
import { type Change, type Read, type Write, entry } from '#domain/core/change.ts'
import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { noHardware, type Node } from '#domain/core/node.ts'
import type { Token } from '#domain/core/token.ts'
import { openJournalWitness, type JournalWitness } from '#plane/store/journal/journal-witness.ts'
import { openSqliteStore } from '#plane/store/sqlite/open-sqlite-store.ts'
import { openPostgresStore } from '#plane/store/postgres/open-postgres-store.ts'
import { openPgAccess } from '#plane/store/postgres/pg-access.ts'
import { migrateDatabase } from '#plane/store/postgres/run-migrations.ts'
import type { HeadSigner, Store, StoreCore } from '#plane/store/contract/store.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import type { PostgresTarget } from '#platform/postgres.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'

export const someTimeMs = 1_800_000_000_000

export const makeSigner = (): HeadSigner => {
  const pair = generateKeyPairSync('ed25519')
  return signerOf(pair.privateKey, pair.publicKey)
}

export const signerOf = (privateKey: KeyObject, publicKey: KeyObject): HeadSigner => ({
  keyId: 'test-key',
  sign: (head) => sign(null, head, privateKey),
  verify: (head, signature) => verify(null, head, publicKey, signature),
})

/** The system's timers, but what runs every few seconds runs when the test says so. */
export const steppedTimers = (): { timers: Timers; tick(): void } => {
  const repeating = new Set<() => void>()
  return {
    timers: {
      ...systemTimers,
      every(_ms, run) {
        repeating.add(run)
        return () => void repeating.delete(run)
      },
    },
    tick() {
      for (const run of repeating) run()
    },
  }
}

export const temporaryFolder = (): string => fs.mkdtempSync(path.join(os.tmpdir(), 'muster-store-'))

/** A folder for one test. What is handed to `atEnd` runs when the test has ended, last first, then the folder goes. */
export const workplace = (t: TestContext): { folder: string; atEnd(run: () => unknown): void } => {
  const folder = temporaryFolder()
  const ends: (() => unknown)[] = [() => fs.rmSync(folder, { recursive: true })]
  t.after(async () => {
    for (const run of ends.toReversed()) await run()
  })
  return { folder, atEnd: (run) => void ends.push(run) }
}

const testCore: StoreCore = { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog }

export type StoreOptions = Partial<StoreCore> & {
  readonly domainName?: () => string
  readonly witness?: JournalWitness
}

export const openStore = (
  folder: string,
  signer: HeadSigner,
  { domainName = () => 'test.example', witness = openJournalWitness(), ...core }: StoreOptions = {},
): Promise<Store> => openSqliteStore({ ...testCore, ...core }, { folder, author: { signer, domainName }, witness })

/** As a replica of its own, however many there are on that database. */
export const openPostgresStoreOn = async (
  target: PostgresTarget,
  signer: HeadSigner,
  { domainName = () => 'test.example', witness = openJournalWitness(), ...more }: StoreOptions = {},
): Promise<Store> => {
  const core = { ...testCore, ...more }
  const access = openPgAccess(core, target)
  try {
    const migrated = await migrateDatabase(access)
    const parts = { access, author: { signer, domainName }, witness, migrated }
    return await openPostgresStore(core, parts, { name: 'test', clockToleranceMs: Infinity })
  } catch (error) {
    await access.close()
    throw error
  }
}

const by = { actor: 'system:test', source: null, correlation: null }

export const note = (node: string | null = null, type: EntryDraft['type'] = 'node.registered'): EntryDraft =>
  entry(by, someTimeMs, type, { node })

export const change = (reads: readonly Read[], writes: readonly Write[]): Change => ({
  reads,
  writes,
  entries: [note()],
})

export const read = (row: Read['row'], key: string, version: number): Read => ({ row, key, version })

export const someNode = (id: string, more: Partial<Node> = {}): Node => ({
  id,
  profile: 'gpu-cloud',
  membership: { kind: 'registered', sinceMs: someTimeMs },
  epoch: 0,
  tenure: 1,
  assignment: null,
  drain: 'none',
  allocations: 0,
  wireguard: null,
  machine: nothingTagged,
  hardware: noHardware,
  facts: null,
  assurance: 'none',
  conditions: [],
  approvals: [],
  counter: 1,
  recovery: null,
  repair: null,
  rehearsal: null,
  provisioning: null,
  scrapeAddress: null,
  registeredAtMs: someTimeMs,
  registeredBy: 'operator:test',
  ...more,
})

export const putNode = (id: string, more: Partial<Node> = {}): Write => ({ put: 'node', value: someNode(id, more) })

/** Registers a node nobody has seen. */
export const newNode = (id: string, more: Partial<Node> = {}): Change => ({
  reads: [read('node', id, 0)],
  writes: [putNode(id, more)],
  entries: [note(id)],
})

export const someToken = (id: string, more: Partial<Token> = {}): Token => ({
  id,
  hash: `hash-of-${id}`,
  scope: { kind: 'domain' },
  profile: 'mesh-paas',
  replace: false,
  serverName: null,
  createdBy: 'operator:test',
  createdAtMs: someTimeMs,
  expiresAtMs: someTimeMs + 60_000,
  state: { kind: 'unused' },
  ...more,
})

export const someCertificate = (serial: string, more: Partial<CertificateRow> = {}): CertificateRow => ({
  issuer: 'ca',
  serial,
  subject: { kind: 'node', node: 'n1', epoch: 1 },
  spki: 'spki',
  sha256: 'sha256',
  issuedAtMs: someTimeMs,
  notAfterMs: someTimeMs + 86_400_000,
  der: 'AAAA',
  order: `order-${serial}`,
  renews: null,
  ...more,
})
