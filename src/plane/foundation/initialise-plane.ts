// `muster ca init`: makes the domain without starting a plane on it.

import { certificateOf } from '#plane/authority/ca-signer.ts'
import { bookOf } from '#plane/authority/issuer-book.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import type { Log } from '#platform/log.ts'
import { requestFirstCa } from './first-ceremony.ts'
import { endFirstStart } from './first-start.ts'
import { layFoundation } from './foundation.ts'
import type { Initialised } from './initialise.ts'

export type InitialisedPlane = Initialised & {
  readonly rootFingerprint: string
  /** The file with the request for the first CA; null: there is a CA. */
  readonly request: string | null
}

export const initialisePlane = async (config: PlaneConfig, log: Log): Promise<InitialisedPlane> => {
  const foundation = await layFoundation(config, log)
  const { store, firstRun, rootKeyFile } = foundation
  try {
    endFirstStart(config.dataFolder)
    const { root } = bookOf(await store.issuers())
    const request = await requestFirstCa(config, foundation)
    return { firstRun, rootKeyFile, rootFingerprint: certificateOf(root).sha256, request }
  } finally {
    await store.close()
  }
}
