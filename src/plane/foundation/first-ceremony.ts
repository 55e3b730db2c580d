// The first CA below a root that no plane ever had: its request goes into a file, and what the root has signed is imported before
// the first start. Without it the plane has no certificate to listen with.

import * as path from 'node:path'
import type { Attribution } from '#domain/core/change.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import { pathExists } from '#platform/paths.ts'
import { readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import { callerName } from '#platform/this-process.ts'
import type { AuthorityState } from '#plane/authority/authority-state.ts'
import { certificateOf } from '#plane/authority/ca-signer.ts'
import { importIntermediate, requestIntermediate } from '#plane/authority/ceremony.ts'
import { bookOf } from '#plane/authority/issuer-book.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import { openFeed } from '#plane/core/feed.ts'
import { StoreRefused } from '#plane/store/contract/store-errors.ts'
import { asUsual, layFoundation, type Foundation } from './foundation.ts'

/** Where the request lies until it is answered; `muster ca import` sees by it that no plane runs yet. */
const requestFileOf = (dataFolder: string): string => path.join(dataFolder, 'intermediate.csr')

/** Null: there is a CA below the root. Else the file with the request for it, the same one each time. */
export const requestFirstCa = async (config: PlaneConfig, foundation: Foundation): Promise<string | null> => {
  const { store } = foundation
  const file = requestFileOf(config.dataFolder)
  const book = bookOf(await store.issuers())
  if (book.rows.some(({ value }) => value.role !== 'root')) {
    // Another replica has imported it.
    if (pathExists(file)) removeFile(file)
    return null
  }
  const request = await store.exclusively(() => requestIntermediate(partsOf(config, foundation), byHand(), 'runtime'))
  if (readFileIfAny(file) !== request) replaceFile(file, request, 0o644)
  return file
}

/** What a start says that comes before the import. */
export const refuseWithoutCa = async (config: PlaneConfig, foundation: Foundation): Promise<void> => {
  const file = await requestFirstCa(config, foundation)
  if (file === null) return
  throw new StoreRefused(
    'CEREMONY_UNFINISHED',
    'the key of the root of this domain is on another machine, and the CA below it is not signed yet',
    `Carry ${file} to the key: muster ca sign --root-key KEY --root-cert FILE --request intermediate.csr > intermediate.pem; then here: muster ca import intermediate.pem`,
  )
}

export type FirstCa = {
  readonly rootFingerprint: string
  readonly issuer: string
  readonly role: string
  readonly notAfterMs: number
}

/** For `muster ca import` on a plane that was never started. */
export const importFirstCa = async (
  config: PlaneConfig,
  certificatePem: string,
  log: Log,
): Promise<FirstCa | Refusal> => {
  const needsDomain = 'there is no domain here that a CA could be imported into'
  const foundation = await layFoundation(config, log, { ...asUsual, needsDomain })
  const { store } = foundation
  try {
    const profiles = await store.profiles()
    const lifetimes = profiles.map(({ value }) => value.certificate.lifetimeMs)
    const outcome = await store.exclusively(async () => {
      const state: AuthorityState = {
        book: bookOf(await store.issuers()),
        ...{ rootOnline: false, signer: null, server: null, spareKey: null, agingJournaledAtMs: null },
        longestLeafMs: Math.max(config.serverCertificateLifetimeMs, ...lifetimes),
      }
      return importIntermediate(partsOf(config, foundation), state, certificatePem, byHand())
    })
    if (isRefusal(outcome)) return outcome
    const book = bookOf(await store.issuers())
    const { id, role, notAfterMs } = book.issuing ?? book.domainCa ?? book.root
    if (pathExists(requestFileOf(config.dataFolder))) removeFile(requestFileOf(config.dataFolder))
    return { rootFingerprint: certificateOf(book.root).sha256, issuer: id, role, notAfterMs }
  } finally {
    await store.close()
  }
}

const byHand = (): Attribution => ({ actor: `host:${callerName()}`, source: null, correlation: null })

/** Workers have an authority once the plane runs. */
const noWorkers = { stored: () => [], take: () => Promise.reject(new Error('the plane does not run')) }

const partsOf = (config: PlaneConfig, { store, clock, random, log, custody }: Foundation) => ({
  core: { store, feed: openFeed(), clock, random, log },
  custody,
  workers: noWorkers,
  options: {
    domain: config.domainName,
    issuerKey: config.issuerKey,
    caKeyPlace: config.caKeyPlace,
    responderKeyPlace: config.responderKeyPlace,
    intermediateLifetimeMs: config.intermediateLifetimeMs,
    serverLifetimeMs: config.serverCertificateLifetimeMs,
    statusUrl: config.statusUrl,
  },
})
