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

export const layFoundation = async (config: PlaneConfig, log: Log): Promise<Foundation & Initialised> => {
  const { dataFolder, sealKeyFile: keyFile, credentialsFolder } = config
  makeFolder(dataFolder, 0o700)
  const fault = faultOfPrivateFolder(dataFolder)
  if (fault !== null) throw new ConfigProblem(`the data folder ${dataFolder} ${fault}: chown it, and chmod 700`)
  const sealing = findSealingKey({ dataFolder, keyFile, credentialsFolder }, systemRandom)
  let domainName = config.domainName
  const base = { clock: systemClock, timers: systemTimers, random: systemRandom, log }
  const store = await openSqliteStore({
    ...base,
    folder: dataFolder,
    signer: openHeadSigner(dataFolder, sealing.key),
    domainName: () => domainName,
  })
  const domain = await store.get('domain', 'domain')
  if (domain !== null) domainName = domain.value.name
  const foundation = { ...base, store, custody: openKeyCustody(path.join(dataFolder, 'keys'), sealing) }
  return { ...foundation, ...(await initialiseDomain(foundation, config)) }
}

/** `muster ca init`: makes the data folder without starting a plane on it. */
export const initialisePlane = async (config: PlaneConfig, log: Log): Promise<Initialised> => {
  const { store, firstRun, rootKeyFile } = await layFoundation(config, log)
  await store.close()
  return { firstRun, rootKeyFile }
}
