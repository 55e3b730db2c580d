// A data folder with a domain in it, as small as one can be, for moving it about.

import * as fs from 'node:fs'
import * as path from 'node:path'
import type { Change, Write } from '#domain/core/change.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { planeConfig, type PlaneConfig } from '#plane/config/config.ts'
import { sealingKeyOf } from '#plane/keys/seal.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import type { HeadSigner, Store } from '#plane/store/contract/store.ts'
import { openSealedKeys } from '#plane/store/copy/sealing-key.ts'
import type { CopyRun } from '#plane/store/copy/copy-run.ts'
import { systemClock } from '#platform/clock.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { fleetRows, newRowsOf } from '../fakes/fleet-rows.ts'
import type { TestDatabase } from '../process/postgres-server.ts'
import { newNode, note, openStore, putNode, read, someCertificate, someTimeMs, someToken } from './harness.ts'

const domainName = 'lab.example'

export const run: CopyRun = {
  timers: systemTimers,
  clock: systemClock,
  stop: new AbortController().signal,
  onProgress: () => {},
}

export const onSqlite = (folder: string, sealKey: string | null = null): PlaneConfig =>
  planeConfig({ data: folder, ...(sealKey === null ? {} : { sealKey }) }, {})

export const onPostgres = ({ env }: TestDatabase, sealKey: string): PlaneConfig =>
  planeConfig({ store: 'postgres', data: '/nowhere', sealKey }, { ...env })

/** Sealing key, sealed keys, and what signs heads. Key files of a plane's own are among them. */
export const furnishFolder = (folder: string): HeadSigner => {
  const secret = Buffer.alloc(32, 7)
  fs.mkdirSync(path.join(folder, 'keys'), { recursive: true, mode: 0o700 })
  fs.writeFileSync(path.join(folder, 'seal.key'), `${secret.toString('hex')}\n`, { mode: 0o600 })
  fs.writeFileSync(path.join(folder, 'admin.key'), 'not a real one\n', { mode: 0o600 })
  const sealing = sealingKeyOf(secret, systemRandom)
  const keep = (file: string, name: string, key: PrivateKey): string => {
    const sealed = sealing.seal(name, key.pkcs8Pem())
    fs.writeFileSync(path.join(folder, 'keys', file), sealed, { mode: 0o600 })
    return sealed
  }
  keep('root.ab12.key', 'root/ab12', generateKey('p256'))
  keep('issuing.cd34.key', 'issuing/cd34', generateKey('p256'))
  keep('retired.ef56.key', 'retired/ef56', generateKey('p256'))
  keep('server.cd34.0f.key', 'server/cd34.0f', generateKey('p256'))
  const head = keep('journal.key', 'journal/head', generateKey('p256'))
  return openSealedKeys(sealing, new Map([['journal/head', head]]))
}

export const withStoreIn = async (
  folder: string,
  signer: HeadSigner,
  act: (store: Store) => Promise<void>,
): Promise<void> => {
  const store = await openStore(folder, signer, { domainName: () => domainName })
  try {
    await act(store)
  } finally {
    await store.close()
  }
}

/** Rows nobody has seen. */
export const newRows = (...writes: readonly Write[]): Change => ({
  reads: writes.map(({ put, value }) => read(put, (tableShapes[put].key as (of: unknown) => string)(value), 0)),
  writes,
  entries: [note()],
})

export const newDomain: Change = newRows({ put: 'domain', value: defaultDomainSettings(domainName) })

const revoked = { membership: { kind: 'revoked', sinceMs: 1, reason: 'sold', by: 'operator:test' } } as const
export const someHardware = { macs: ['02:00:00:00:00:01'], bmcSerial: 'CN7' }

const ofNode = { scope: { kind: 'node', node: 'gpu-002', tenure: 1 } } as const

/** Something of nearly everything: a tombstone that holds an address, tokens made out of order, letters that need care. */
const someChanges: readonly Change[] = [
  newNode('gpu-001', { hardware: someHardware }),
  {
    reads: [read('node', 'gpu-001', 1)],
    writes: [putNode('gpu-001', { hardware: someHardware, ...revoked })],
    entries: [note('gpu-001')],
  },
  newNode('gpu-002', { registeredBy: 'operator:„Ünïcode“ \u2028 \u0000 "\\' }),
  newRows({ put: 'token', value: someToken('t2') }),
  newRows({ put: 'token', value: someToken('t1', ofNode) }),
  { ...newRows({ put: 'certificate', value: someCertificate('0a') }), entries: [note(), note('gpu-002')] },
  newRows(
    {
      put: 'denial',
      value: {
        kind: 'epoch',
        node: 'gpu-001',
        epoch: 1,
        atMs: 1,
        untilMs: someTimeMs,
        why: 'sold',
        reason: 'unspecified',
      },
    },
    { put: 'key-ban', value: { spki: 'ab', why: 'sold', atMs: someTimeMs } },
  ),
]

export const furnishStore = async (store: Store): Promise<void> => {
  const fleet: Change = { reads: newRowsOf(fleetRows), writes: fleetRows, entries: [note()] }
  for (const change of [newDomain, ...someChanges, fleet])
    if ((await store.commit(change)) === 'lost-race') throw new Error('a change of the set-up lost a race')
  store.observe('gpu-002', { lastSeenMs: 7, agentVersion: '1.0', source: '192.0.2.1' })
  const [last] = await store.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
  await store.keepWebhookProgress({ after: last?.cursor ?? null, settled: ['x'] })
}
