// `muster ca replace-lost`: makes a key anew that is gone for good, because a person said so. With SQLite the plane is
// stopped; with PostgreSQL the planes that run see the new one within seconds.

import { isIP } from '#platform/addresses.ts'
import type { Log } from '#platform/log.ts'
import { entry } from '#domain/decision.ts'
import { ConfigProblem, type PlaneConfig } from './config.ts'
import { openFeed } from './feed/feed.ts'
import { layFoundation } from './foundation.ts'
import { openAuthority } from './issuer/built-in-authority.ts'
import { byItself } from './issuer/issuer-entries.ts'
import { openRecoveryAuthority } from './issuer/open-recovery-authority.ts'
import { lostKeys, replaceableKeys, type ReplaceableKey } from './issuer/key-inventory.ts'

export type Replaced = { readonly role: ReplaceableKey; readonly domain: string }

/** Throws ConfigProblem where that key is not lost: then nothing was changed. */
export const replaceLostKey = async (config: PlaneConfig, wanted: string, log: Log): Promise<Replaced> => {
  const role = replaceableKeys.find((one) => one === wanted)
  if (role === undefined)
    throw new ConfigProblem(`a key that can be replaced is ${replaceableKeys.join(', ')}, not ${wanted}`)
  const notHere = async (): Promise<void> => {
    throw new ConfigProblem('there is no domain here whose key could be replaced')
  }
  const foundation = await layFoundation(config, log, { replacing: role, beforeFirst: notHere })
  const { store, custody, clock } = foundation
  try {
    const issuers = (await store.issuers()).map(({ value }) => value)
    const lost = lostKeys({ issuers, names: custody.names(), issuerKey: config.issuerKey, nowMs: clock.nowMs() })
    const isLost = lost.some((one) => one.role === role || (role === 'issuing' && one.role === 'domain-ca'))
    if (role !== 'journal' && !isLost) throw new ConfigProblem(`the ${role} key is not lost: nothing was changed`)
    if (role === 'issuing' && !custody.names().some((name) => name.role === 'root'))
      throw new ConfigProblem(
        'the root is offline, so only it can sign a new issuing CA: start the plane, then muster ca request, muster ca sign, muster ca import',
      )
    const domain = (await store.get('domain', 'domain'))?.value.name ?? config.domainName
    if (role === 'journal') {
      const body = { role: 'journal', custody: 'file', why: 'replaces a lost one' }
      await store.commit({ reads: [], writes: [], entries: [entry(byItself, clock.nowMs(), 'ca.created', {}, body)] })
      return { role, domain }
    }
    const feed = openFeed()
    const certificates = {
      domain,
      serverNames: { dns: config.serverNames.filter((name) => !isIP(name)), ip: config.serverNames.filter(isIP) },
      serverLifetimeMs: config.serverCertificateLifetimeMs,
    }
    const recovery = await openRecoveryAuthority({ ...foundation, feed, options: certificates, replacing: role })
    if (role === 'issuing') {
      const { issuerKey, intermediateLifetimeMs, statusUrl } = config
      const options = { ...certificates, issuerKey, intermediateLifetimeMs, statusUrl }
      // Below a root that is here it is made by opening; below an offline one the ceremony has to follow.
      await openAuthority({ ...foundation, feed, recovery, options })
    }
    return { role, domain }
  } finally {
    await store.close()
  }
}
