// What a plane stands on: its clock, its keys, its store. `muster ca init` needs no more than this.

import * as path from 'node:path'
import { systemClock, type Clock } from '#platform/clock.ts'
import { makeFolder } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import { faultOfPrivateFolder } from '#platform/private-folder.ts'
import { systemRandom, type Random } from '#platform/random.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'
import { openKeyCustody, type KeyCustody } from '#plane/issuer/key-custody.ts'
import { findSealingKey } from '#plane/issuer/sealing-key.ts'
import { openSqliteStore } from '#plane/store/open-sqlite-store.ts'
import type { Store } from '#plane/store/store.ts'
import { refuseBeforeAuthority } from './clock-check.ts'
import { ConfigProblem, type PlaneConfig } from './config.ts'
import { initialiseDomain, type Initialised } from './initialise.ts'
import { openHeadSigner } from './journal-key.ts'

export type Foundation = {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly log: Log
  readonly store: Store
  readonly custody: KeyCustody
}

export type Base = Pick<Foundation, 'clock' | 'timers' | 'random' | 'log'>

export const layFoundation = async (config: PlaneConfig, log: Log): Promise<Foundation & Initialised> => {
  const { dataFolder } = config
  makeFolder(dataFolder, 0o700)
  const fault = faultOfPrivateFolder(dataFolder)
  if (fault !== null) throw new ConfigProblem(`the data folder ${dataFolder} ${fault}: chown it, and chmod 700`)
  const base: Base = { clock: systemClock, timers: systemTimers, random: systemRandom, log }
  let domainName = config.domainName
  const asked = (): string => domainName
  const { store, custody } = await (config.store.kind === 'sqlite'
    ? openOwnStore(base, config, asked)
    : // A plane on its own file has no use for the driver, and starts sooner without.
      (await import('./shared-store.ts')).openSharedStore(base, config, config.store.target, asked))
  const foundation = { ...base, store, custody }
  try {
    const learnName = async (): Promise<void> => {
      domainName = (await store.get('domain', 'domain'))?.value.name ?? domainName
    }
    await learnName()
    await refuseBeforeAuthority(foundation)
    const initialised = await initialiseDomain(foundation, config)
    // Another plane may have made it meanwhile, under another name.
    await learnName()
    return { ...foundation, ...initialised }
  } catch (error) {
    await store.close()
    throw error
  }
}

const openOwnStore = async (
  base: Base,
  { dataFolder, sealKeyFile: keyFile, credentialsFolder }: PlaneConfig,
  domainName: () => string,
): Promise<Pick<Foundation, 'store' | 'custody'>> => {
  const sealing = findSealingKey({ dataFolder, keyFile, credentialsFolder }, systemRandom)
  const signer = openHeadSigner(dataFolder, sealing.key)
  const store = await openSqliteStore({ ...base, folder: dataFolder, signer, domainName })
  return { store, custody: openKeyCustody(path.join(dataFolder, 'keys'), sealing) }
}

/** `muster ca init`: makes the domain without starting a plane on it. */
export const initialisePlane = async (config: PlaneConfig, log: Log): Promise<Initialised> => {
  const { store, firstRun, rootKeyFile } = await layFoundation(config, log)
  await store.close()
  return { firstRun, rootKeyFile }
}
