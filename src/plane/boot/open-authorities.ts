// The authorities of a domain, each with its own trust: the runtime's, that of recovery, that of programs, and that of workers.

import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { openProgramsAuthority } from '#plane/authority/programs-authority.ts'
import { openRecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import type { ServedNames } from '#plane/authority/served-names.ts'
import { openWorkersAuthority } from '#plane/authority/workers-authority.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import type { Core } from '#plane/core/core.ts'
import { openIssuance } from '#plane/issuers/open-issuance.ts'
import type { KnownIssuers } from '#plane/issuers/known-issuers.ts'
import type { IssuerDoor } from '#plane/issuers/outside-orders.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'

type Given = {
  readonly custody: KeyCustody
  readonly names: ServedNames
  readonly domain: string
  readonly door: IssuerDoor
  readonly known: Pick<KnownIssuers, 'find' | 'all'>
}

/** When it resolves, what is due has been made and replaced once. */
export const openAuthorities = async (
  core: Core,
  config: PlaneConfig,
  { custody, names, domain, door, known }: Given,
) => {
  const certificates = { domain, serverLifetimeMs: config.serverCertificateLifetimeMs }
  const recovery = await openRecoveryAuthority(core, { custody, names, options: certificates })
  const programs = await openProgramsAuthority(core, { custody, domain })
  const workers = await openWorkersAuthority(core, { custody, domain })
  const authority = await openAuthority(core, {
    custody,
    names,
    recovery,
    programs,
    workers,
    options: {
      ...certificates,
      issuerKey: config.issuerKey,
      caKeyPlace: config.caKeyPlace,
      responderKeyPlace: config.responderKeyPlace,
      intermediateLifetimeMs: config.intermediateLifetimeMs,
      statusUrl: config.statusUrl,
    },
  })
  const maintainAuthority = async (): Promise<void> => {
    const profiles = await core.store.profiles()
    await authority.maintain(Math.max(0, ...profiles.map(({ value }) => value.certificate.lifetimeMs)))
  }
  await maintainAuthority()
  await programs.maintain()
  await workers.maintain()
  const issuance = await openIssuance(core, { own: authority, door, known })
  return { recovery, programs, workers, authority, issuance, maintainAuthority }
}
