// A built-in authority on a real store, with a clock the test moves. Its keys are where those of that store are.

import { noPrograms, noWorkers } from '../fakes/no-programs.ts'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { TestContext } from 'node:test'
import type { Attribution } from '#domain/core/change.ts'
import type { ServerNames } from '#domain/ca/server-certificate.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import type { EntryType, JournalEntry } from '#domain/core/journal-entry.ts'
import { placeOrder, type SigningOrder, type IssuedCertificate } from '#domain/core/certificate.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { isRefusal } from '#domain/core/refusal.ts'
import { intermediateLifetimeMs, rootLifetimeMs } from '#pki/authority-certificates.ts'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { openFeed } from '#plane/core/feed.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { AuthorityParts, AuthorityOptions } from '#plane/authority/authority-state.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { createAuthority, type NewAuthority } from '#plane/authority/create-authority.ts'
import { openKeyCustody, type KeyCustody } from '#plane/keys/key-custody.ts'
import { openRecoveryAuthority, type RecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { openServedNames } from '#plane/authority/served-names.ts'
import type { KeysElsewhere } from '#plane/keys/keys-elsewhere.ts'
import { findSealingKey } from '#plane/keys/sealing-key.ts'
import { openSharedCustody } from '#plane/keys/shared-custody.ts'
import type { ReplaceableKey } from '#plane/keys/key-inventory.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import { systemRandom } from '#platform/random.ts'
import { manualClock, type ManualClock } from '../fakes/manual-clock.ts'
import { makeSigner, openStore } from '../store/harness.ts'
import { cleanup } from '../process/cleanup.ts'
import { openStoreUnderTest } from '../process/store-under-test.ts'
import { tempFolder } from '../process/temp-folder.ts'

export const hour = 3_600_000
export const day = 24 * hour
export const longestProfileMs = 90 * day
export const startMs = 1_800_000_000_000
export const operator: Attribution = { actor: 'operator:test', source: null, correlation: null }

const localNames: ServerNames = { dns: ['localhost'], ip: ['127.0.0.1', '::1'] }

export type Setup = {
  readonly folder: string
  readonly clock: ManualClock
  readonly store: Store
  readonly rootKeyFile: string | null
  /** As at a start of the plane: nothing but files and store is carried over. */
  open(
    options?: Partial<AuthorityOptions> & { readonly serverNames?: ServerNames },
    sealKeyFile?: string,
    recovery?: AuthorityParts['recovery'],
  ): Promise<Authority>
  openRecovery(replacing?: readonly ReplaceableKey[]): Promise<RecoveryAuthority>
  /** Where that store has its keys, opened once more. */
  custody(): Promise<KeyCustody>
  /** Every entry of a type, oldest first. */
  journal(type: EntryType): Promise<readonly JournalEntry[]>
  /** The roles of the keys that are kept, but for responders, which outlive the keys of their issuers. */
  keyFiles(): readonly string[]
  /** The same domain on its store, opened once more. */
  on(store: Store): Setup
}

export const setUp = async (t: TestContext, wanted: Partial<NewAuthority> = {}): Promise<Setup> => {
  const folder = tempFolder(t)
  return setUpOn(folder, await openStoreUnderTest(t, folder, makeSigner()), wanted)
}

/** On the embedded store, whichever the run is about: these keys lie in files, and one plane has them for itself. */
export const setUpWithFiles = async (
  t: TestContext,
  wanted: Partial<NewAuthority> = {},
  elsewhere?: KeysElsewhere,
): Promise<Setup> => {
  const folder = tempFolder(t)
  const store = await openStore(folder, makeSigner())
  cleanup(t, () => store.close())
  return setUpOn(folder, store, wanted, elsewhere)
}

export const setUpOn = async (
  folder: string,
  first: Store,
  wanted: Partial<NewAuthority>,
  elsewhere?: KeysElsewhere,
): Promise<Setup> => {
  const clock = manualClock(startMs)
  const custodyOn = async (store: Store, keyFile: string | null): Promise<KeyCustody> => {
    const sealing = findSealingKey({ dataFolder: folder, keyFile, credentialsFolder: null }, systemRandom)
    return store.sealedKeys === null
      ? openKeyCustody(path.join(folder, 'keys'), sealing, elsewhere)
      : openSharedCustody(store.sealedKeys, sealing)
  }
  const settings: NewAuthority = {
    domain: 'test.example',
    rootLifetimeMs,
    rootPathLen: 2,
    rootOut: null,
    issuerKey: 'file',
    intermediateLifetimeMs,
    ...wanted,
  }
  const created = await createAuthority(
    { clock, random: systemRandom },
    await custodyOn(first, null),
    settings,
    operator,
  )
  if (isRefusal(created)) throw new Error(created.detail ?? created.code)
  const { rootKeyFile } = created
  const writes = [
    { put: 'domain', value: defaultDomainSettings('test.example') } as const,
    ...shippedProfiles.map((value) => ({ put: 'profile', value }) as const),
    ...created.rows.map((value) => ({ put: 'issuer', value }) as const),
  ]
  const reads = [
    { row: 'domain', key: 'domain', version: 0 } as const,
    ...shippedProfiles.map(({ name }) => ({ row: 'profile', key: name, version: 0 }) as const),
    ...created.rows.map(({ id }) => ({ row: 'issuer', key: id, version: 0 }) as const),
  ]
  await first.commit({ reads, writes, entries: created.entries })
  return setupOn(first)

  function setupOn(store: Store): Setup {
    const custodyWith = (keyFile: string | null) => custodyOn(store, keyFile)
    const coreNow = () => ({ store, feed: openFeed(), clock, random: systemRandom, log: silentLog })

    return {
      folder,
      clock,
      store,
      rootKeyFile,
      open: async (given = {}, sealKeyFile, recovery = { storedRoots: () => [], warnings: () => [] }) => {
        const { serverNames = localNames, ...options } = given
        const core = coreNow()
        return openAuthority(
          { ...core, timers: systemTimers },
          {
            custody: await custodyWith(sealKeyFile ?? null),
            names: await openServedNames(core, { names: serverNames, host: 'localhost', addresses: [] }),
            recovery,
            programs: noPrograms,
            workers: noWorkers,
            options: {
              domain: 'test.example',
              issuerKey: settings.issuerKey,
              caKeyPlace: settings.caKeyPlace ?? null,
              intermediateLifetimeMs: settings.intermediateLifetimeMs,
              serverLifetimeMs: 90 * day,
              ...options,
            },
          },
        )
      },
      openRecovery: async (replacing = []) => {
        const core = coreNow()
        return openRecoveryAuthority(core, {
          custody: await custodyWith(null),
          names: await openServedNames(core, { names: localNames, host: 'localhost', addresses: [] }),
          replacing,
          options: { domain: 'test.example', serverLifetimeMs: 90 * day },
        })
      },
      custody: () => custodyWith(null),
      async journal(type) {
        const found = await store.journal.read({ after: null, last: null, limit: 1000, node: null, type })
        return found.map(({ entry }) => entry)
      },
      keyFiles: () =>
        fs
          .readdirSync(path.join(folder, 'keys'))
          .map((name) => name.replace(/\..*/, ''))
          .filter((role) => role !== 'responder'),
      on: setupOn,
    }
  }
}

let orders = 0

export const leafOrder = (nowMs: number, lifetimeMs = longestProfileMs): SigningOrder =>
  placeOrder({
    id: `order-${orders++}`,
    subject: { cn: 'node-gpu-001', o: 'test.example', ou: 'nodes' },
    uriSans: ['spiffe://test.example/node/gpu-001'],
    dnsSans: [],
    ipSans: [],
    usage: 'client',
    publicKey: generateKey('ed25519').spki,
    issuedAtMs: nowMs,
    lifetimeMs,
    aiaUrl: null,
    cdpUrl: null,
    for: { kind: 'node', node: 'gpu-001', epoch: 1 },
  })

/** What `openssl verify` says of a leaf of ours, at a time: its output, which ends in OK when all is well. */
export const opensslVerify = (
  t: TestContext,
  openssl: string,
  authority: Authority,
  leaf: IssuedCertificate,
  atMs: number,
): string => {
  const folder = tempFolder(t)
  const file = (name: string, content: string): string => {
    fs.writeFileSync(path.join(folder, name), content)
    return path.join(folder, name)
  }
  const chain = authority.chainOf(leaf.issuer).map((der) => toPem('CERTIFICATE', der))
  return execFileSync(
    openssl,
    [
      'verify',
      '-x509_strict',
      '-purpose',
      'sslclient',
      '-attime',
      String(Math.floor(atMs / 1000)),
      '-CAfile',
      file('roots.pem', authority.roots().join('')),
      '-untrusted',
      file('chain.pem', chain.join('')),
      file('leaf.pem', toPem('CERTIFICATE', Buffer.from(leaf.der, 'base64'))),
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  ).trim()
}
