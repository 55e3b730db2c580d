// `muster ca replace-lost`: makes keys anew that are gone for good, because a person said so. With SQLite the plane is
// stopped; with PostgreSQL the replicas that run see the new ones within seconds.

import type { Log } from '#platform/log.ts'
import { boundedText, entry } from '#domain/core/change.ts'
import { ConfigProblem, namesConfig, type PlaneConfig } from '#plane/config/config.ts'
import { openFeed } from '#plane/core/feed.ts'
import { asUsual, layFoundation, type StartOptions } from './foundation.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { openProgramsAuthority } from '#plane/authority/programs-authority.ts'
import { openRecoveryAuthority } from '#plane/authority/recovery-authority.ts'
import { openWorkersAuthority } from '#plane/authority/workers-authority.ts'
import { openServedNames } from '#plane/authority/served-names.ts'
import {
  lostKeyFile,
  replaceableKeys,
  replacedBy,
  type LostKey,
  type ReplaceableKey,
} from '#plane/keys/key-inventory.ts'

export type Replaced = { readonly role: ReplaceableKey; readonly lost: string }

/** Who says so, as the journal names them, and why. */
export type ReplaceOrder = { readonly actor: string; readonly reason: string }

/**
 * All of them or, where one is not lost or another that the domain needs is, none: then ConfigProblem or StoreRefused is
 * thrown. `order` null: says what would be replaced, and changes nothing.
 */
export const replaceLostKeys = async (
  config: PlaneConfig,
  wanted: readonly string[],
  order: ReplaceOrder | null,
  log: Log,
): Promise<readonly Replaced[]> => {
  const roles = rolesIn(wanted)
  const needsDomain = 'there is no domain here whose key could be replaced'
  let found: readonly Replaced[] = []
  const examined: StartOptions['examined'] = (lost, names) => {
    found = roles.map((role) => ({ role, lost: lostKeyFile(findLost(lost, role)) }))
    if (roles.includes('issuing') && !names.some((name) => name.role === 'root')) throw withoutRoot(lost)
    if (order === null) throw new OnlyShown()
  }
  const foundation = await layFoundation(config, log, { ...asUsual, replacing: roles, needsDomain, examined }).catch(
    (error: unknown) => {
      if (error instanceof OnlyShown) return null
      throw error
    },
  )
  if (foundation === null || order === null) return found
  const { store, clock, random, timers, custody } = foundation
  try {
    const domain = (await store.get('domain', 'domain'))?.value.name ?? config.domainName
    const by = { actor: order.actor, source: null, correlation: null }
    const [first, ...others] = found.map(({ role, lost }) => {
      const body = { role, custody: 'file', why: 'replaces a lost one', lost, reason: boundedText(order.reason) }
      return entry(by, clock.nowMs(), 'ca.created', {}, body)
    })
    // Before the keys but the journal's, which opening the store has made: the journal says who asked for them.
    if (first !== undefined) await store.commit({ reads: [], writes: [], entries: [first, ...others] })
    // The journal's was made when the store was opened.
    if (roles.every((role) => role === 'journal')) return found

    const core = { store, feed: openFeed(), clock, random, timers, log }
    const names = await openServedNames(core, namesConfig(config))
    const certificates = { domain, serverLifetimeMs: config.serverCertificateLifetimeMs }
    const recovery = await openRecoveryAuthority(core, { custody, names, options: certificates, replacing: roles })
    if (roles.includes('issuing')) {
      const { issuerKey, caKeyPlace, intermediateLifetimeMs, statusUrl } = config
      const options = { ...certificates, issuerKey, caKeyPlace, intermediateLifetimeMs, statusUrl }
      // Below a root that is here it is made by opening; below an offline one the ceremony has to follow.
      const programs = await openProgramsAuthority(core, { custody, domain })
      const workers = await openWorkersAuthority(core, { custody, domain })
      await openAuthority(core, { custody, names, recovery, programs, workers, options })
    }
    return found
  } finally {
    await store.close()
  }
}

class OnlyShown extends Error {}

const rolesIn = (wanted: readonly string[]): readonly ReplaceableKey[] =>
  [...new Set(wanted)].map((name) => {
    const role = replaceableKeys.find((one) => one === name)
    if (role !== undefined) return role
    throw new ConfigProblem(`a key that can be replaced is ${replaceableKeys.join(', ')}, not ${name}`)
  })

const findLost = (lost: readonly LostKey[], role: ReplaceableKey): LostKey => {
  const found = lost.find((one) => one.role !== 'root' && replacedBy(one.role) === role)
  if (found === undefined) throw new ConfigProblem(`the ${role} key is not lost: nothing was changed`)
  return found
}

const withoutRoot = (lost: readonly LostKey[]): ConfigProblem =>
  new ConfigProblem(
    lost.some(({ role }) => role === 'root')
      ? 'the key of the root is gone too, and only it can sign a new issuing CA: restore keys/ as a whole'
      : 'the root is offline, so only it can sign a new issuing CA: start the plane, then muster ca request, muster ca sign, muster ca import',
  )
