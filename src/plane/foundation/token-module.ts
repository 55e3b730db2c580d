// Keys in tokens need a PKCS#11 module. A plane that could use none of them does not start; one whose token is away does, and says so.

import { Pkcs11Unavailable } from '#platform/pkcs11.ts'
import { isReference } from '#plane/keys/key-reference.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import type { Foundation } from './foundation.ts'

export const refuseWithoutModule = async (
  { caToken }: Pick<PlaneConfig, 'caToken'>,
  { custody, log }: Pick<Foundation, 'custody' | 'log'>,
): Promise<void> => {
  const isAnyInToken = caToken !== null || custody.names().some((name) => isReference(custody.find(name) ?? ''))
  if (!isAnyInToken) return
  try {
    await custody.elsewhere.load()
  } catch (error) {
    if (error instanceof Pkcs11Unavailable && error.trouble !== 'library')
      log.warn({ err: error }, 'the tokens that keys are in cannot be used now')
    else throw error
  }
}
