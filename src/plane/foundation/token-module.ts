// Keys in tokens need a PKCS#11 module, and keys in Transit a Vault. A plane that could use none of them does not start; one whose token or Vault is away
// does, and says so.

import { elsewhereOf, elsewhereOfPlace } from '#plane/keys/key-reference.ts'
import { isKeyUnavailable } from '#plane/keys/key-unavailable.ts'
import type { PlaneConfig } from '#plane/config/config.ts'
import type { Foundation } from './foundation.ts'

type Places = Pick<PlaneConfig, 'caKeyPlace' | 'responderKeyPlace' | 'taskSignerKeyPlace'>

export const refuseWithoutModule = async (
  places: Places,
  { custody, log }: Pick<Foundation, 'custody' | 'log'>,
): Promise<void> => {
  const used = new Set(custody.names().map((name) => elsewhereOf(custody.find(name) ?? '')))
  for (const place of [places.caKeyPlace, places.responderKeyPlace, places.taskSignerKeyPlace])
    if (place !== null) used.add(elsewhereOfPlace(place))
  for (const where of used) {
    if (where === null) continue
    try {
      await custody.elsewhere.load(where)
    } catch (error) {
      if (isKeyUnavailable(error) && error.trouble !== 'library' && error.trouble !== 'settings')
        log.warn({ err: error }, 'keys that are not here cannot be used now')
      else throw error
    }
  }
}
