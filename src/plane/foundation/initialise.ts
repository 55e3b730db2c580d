// The first start of a domain: certificate authority, settings, profiles and an administrator's key, in one commit. The
// keys are durable before it, so a crash in between leaves keys that nothing names; the next start makes new ones. Of
// several replicas that start at once one makes the domain, and has the administrator's key in its data folder.

import * as path from 'node:path'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { decided, entry, type Attribution, type Write } from '#domain/core/change.ts'
import { defaultDomainSettings } from '#domain/core/domain-settings.ts'
import { keyBody } from '#domain/operators/operator-keys.ts'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { readFileIfAny, readShortFile } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import { sortableId } from '#platform/random.ts'
import { hashOfSecret, newOperatorSecret } from '#plane/operators/change-operator-keys.ts'
import { createAuthority } from '#plane/authority/create-authority.ts'
import { noteFirstStart, readFirstStart, setAdminKeyAside, setLeftoversAside } from './first-start.ts'
import type { Foundation } from './foundation.ts'
import { ConfigProblem, type PlaneConfig } from '#plane/config/config.ts'

const by: Attribution = { actor: 'system:first-start', source: null, correlation: null }

export type Initialised = { readonly firstRun: boolean; readonly rootKeyFile: string | null }

/**
 * Does nothing where there is a domain already. One that was made here and never announced, because its start failed after
 * that, is announced as new.
 */
export const initialiseDomain = async (
  foundation: Foundation,
  config: PlaneConfig,
  beforeFirst: () => Promise<void>,
): Promise<Initialised> => {
  const { store, custody } = foundation
  const isMade = async (): Promise<boolean> => (await store.get('domain', 'domain')) !== null
  if ((await isMade()) && readFirstStart(config.dataFolder) === null) return announced
  return store.exclusively(async () => {
    if (await isMade()) {
      await custody.refresh()
      return whatWasMade(foundation, config)
    }
    if (store.sealedKeys !== null) {
      await beforeFirst()
      // In this turn: a plane on the same folder may have made a domain, and its administrator's key, a moment ago.
      const isUnfinished = readFirstStart(config.dataFolder) !== null
      if (isUnfinished) setLeftoversAside(config.dataFolder, foundation.clock.nowMs(), foundation.log)
    }
    noteFirstStart(config.dataFolder, { rootKeyFile: null, root: null })
    return makeDomain(foundation, config)
  })
}

const announced: Initialised = { firstRun: false, rootKeyFile: null }

/** The note of an unfinished first start says whether this domain is the one that was made here. */
const whatWasMade = async ({ store, clock, log }: Foundation, { dataFolder }: PlaneConfig): Promise<Initialised> => {
  const note = readFirstStart(dataFolder)
  if (note === null) return announced
  if ((await store.issuers()).some(({ value }) => value.id === note.root))
    return { firstRun: true, rootKeyFile: note.rootKeyFile }
  const secret = readFileIfAny(adminKeyFile(dataFolder))?.trim() ?? ''
  // A folder that was restored from a backup over an unfinished first start has the key of its domain.
  const isOfDomain = (await store.get('operator-key', hashOfSecret(secret))) !== null
  if (!isOfDomain) setAdminKeyAside(dataFolder, clock.nowMs(), log)
  return announced
}

const makeDomain = async (foundation: Foundation, config: PlaneConfig): Promise<Initialised> => {
  const { store, clock, random, custody, keySeal } = foundation
  const nowMs = clock.nowMs()
  const authority = await createAuthority(
    { clock, random },
    custody,
    {
      domain: config.domainName,
      rootLifetimeMs: config.rootLifetimeMs,
      rootPathLen: config.rootPathLen,
      rootOut: config.rootOut,
      rootKey: config.rootKey,
      rootCertificate: rootCertificateIn(config),
      caKeyPlace: config.caKeyPlace,
      issuerKey: config.issuerKey,
      intermediateLifetimeMs: config.intermediateLifetimeMs,
    },
    by,
  )
  if (authority.kind === 'refused') throw new ConfigProblem(authority.detail ?? authority.code)

  const admin = newOperatorSecret(random)
  const root = authority.rows.find(({ role }) => role === 'root')?.id ?? null
  noteFirstStart(config.dataFolder, { rootKeyFile: authority.rootKeyFile, root })
  if (createFile(adminKeyFile(config.dataFolder), `${admin.secret}\n`, 0o600) === 'exists') {
    throw new StoreRefused(
      'DATA_FOLDER_INCOMPLETE',
      `there is an admin.key in the data folder ${config.dataFolder}, and no domain it belongs to`,
      'Name the database it belongs to, or move it away for a new domain',
    )
  }
  const key = keySeal.seal({
    id: sortableId(nowMs, random),
    name: 'admin',
    role: 'platform-admin',
    hash: admin.hash,
    createdBy: by.actor,
    createdAtMs: nowMs,
    revokedAtMs: null,
    expiresAtMs: null,
  })
  const rows: Write[] = [
    { put: 'domain', value: defaultDomainSettings(config.domainName) },
    { put: 'operator-key', value: key },
    ...shippedProfiles.map((value) => ({ put: 'profile', value }) as const),
    ...authority.rows.map((value) => ({ put: 'issuer', value }) as const),
  ]
  const { change } = decided({
    reads: [
      { row: 'domain', key: 'domain', version: 0 },
      { row: 'operator-key', key: key.hash, version: 0 },
      ...shippedProfiles.map(({ name }) => ({ row: 'profile', key: name, version: 0 }) as const),
      ...authority.rows.map(({ id }) => ({ row: 'issuer', key: id, version: 0 }) as const),
    ],
    writes: rows,
    entries: [
      entry(
        by,
        nowMs,
        'domain.created',
        {},
        { domain: config.domainName, root: `SHA256:${authority.rootFingerprint}` },
      ),
      ...authority.entries,
      entry(by, nowMs, 'operator_key.created', {}, keyBody(key, keySeal)),
    ],
  })
  if ((await store.commit(change)) === 'lost-race') throw new Error('another process has just made the domain')
  return { firstRun: true, rootKeyFile: authority.rootKeyFile }
}

const longestCertificate = 16_384

const rootCertificateIn = ({ rootCertificateFile: file }: PlaneConfig): string | null => {
  if (file === null) return null
  const read = readShortFile(file, longestCertificate)
  if (read === null || read === 'too-long')
    throw new ConfigProblem(`--root-certificate: ${file} is ${read === null ? 'not there' : 'no certificate'}`)
  return read.text
}

export const adminKeyFile = (dataFolder: string): string => path.join(dataFolder, 'admin.key')
