// The part of a plane that enrolls, in this process and without a network: for the cost of a decision by itself, and to fill
// a data folder with a fleet. Everything in it is real but the holders of channels, of which there are none.

import { noHardware } from '#domain/core/node.ts'
import { verifyAs } from '#pki/signature.ts'
import { silentLog } from '#platform/log.ts'
import { planeConfig } from '#plane/config/config.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openAdmissionQueue } from '#plane/limits/admission-queue.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { enrollNode } from '#plane/enrollment/enroll-node.ts'
import { openCopiedImages } from '#plane/identity/copied-images.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { noHolders } from '../test/fakes/no-holders.ts'
import { noOrders } from '../test/fakes/no-orders.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { layFoundation } from '#plane/foundation/foundation.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { openProgramsAuthority } from '#plane/authority/programs-authority.ts'
import { openWorkersAuthority } from '#plane/authority/workers-authority.ts'
import { openRecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { openServedNames } from '#plane/authority/served-names.ts'

export type EnrollingPlane = Awaited<ReturnType<typeof openEnrollingPlane>>

export const openEnrollingPlane = async (folder: string) => {
  const foundation = await layFoundation(planeConfig({ data: folder }, {}), silentLog)
  const { store, clock, random, timers, log, custody } = foundation
  const feed = openFeed()
  const core = { store, feed, clock, random, timers, log }
  const names = await openServedNames(core, { names: { dns: ['localhost'], ip: [] }, host: 'localhost', addresses: [] })
  const certificates = {
    domain: 'muster.local',
    serverLifetimeMs: 90 * 86_400_000,
  }
  const recovery = await openRecoveryAuthority(core, { custody, names, options: certificates })
  const authority = await openAuthority(
    { ...core, timers },
    {
      custody,
      names,
      recovery,
      programs: await openProgramsAuthority(core, { custody, domain: certificates.domain }),
      workers: await openWorkersAuthority(core, { custody, domain: certificates.domain }),
      options: { ...certificates, issuerKey: 'file', intermediateLifetimeMs: 5 * 365 * 86_400_000 },
    },
  )
  const flow = { store, feed, clock, random }
  const parts = {
    issuer: authority,
    orders: noOrders,
    verifyProof: verifyAs,
    recovery,
    domainName: 'muster.local',
    urls: () => ({ node: 'https://localhost:1', marked: true }),
    anonymousBudget: openCallerBudget(clock, () => ({ perMinute: 100, perMinutePerSource: 100 })),
    admission: openAdmissionQueue(clock, 100_000),
    writeLimit: openWriteLimit(clock, () => 1),
    secondHolders: openSecondHolders(flow, noHolders),
    copiedImages: openCopiedImages(flow),
    probe: async () => ({ silentMs: 60_000 }),
  }
  const by = { actor: 'operator:bench', source: null, correlation: null }
  return {
    store,
    async token(node: string): Promise<string> {
      const made = await createToken(flow, parts, { node, profile: null, replace: false, ttlMs: null }, by)
      if (made.kind === 'refused') throw new Error(made.code)
      return made.secret
    },
    async enroll(secret: string, csr: string): Promise<void> {
      const outcome = await enrollNode(flow, parts, {
        method: 'token',
        secret,
        csr,
        askedId: null,
        hardware: noHardware,
        facts: null,
        evidence: null,
        recovery: null,
        identityProof: null,
        wireguard: null,
        source: '127.0.0.1',
        correlation: 'bench',
      })
      if (outcome.kind === 'refused') throw new Error(`${outcome.code} ${outcome.detail ?? ''}`)
    },
  }
}
