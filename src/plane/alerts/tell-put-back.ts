// The newer store was put back after an older copy of it had run in doubt: said at the start, until somebody acknowledges it.

import { putBackAlert } from '#domain/continuity/revoked-meanwhile.ts'
import type { Log } from '#platform/log.ts'
import type { PutBack } from '#plane/foundation/keep-witness.ts'
import { settleAlert, type SettleDeps } from './settle-alert.ts'

export type TellPutBackDeps = SettleDeps & { readonly log: Log; readonly domainName: () => string }

/** The record goes aside behind the alert: a start that dies between the two, or cannot commit, is followed by one that tells. */
export const tellPutBack = async (deps: TellPutBackDeps, putBack: PutBack | null): Promise<void> => {
  if (putBack === null) return
  const nowMs = deps.clock.nowMs()
  try {
    const wanted = putBackAlert(deps.domainName(), putBack.meanwhile, putBack.nameAside(nowMs))
    deps.log.warn({ meanwhile: putBack.meanwhile }, `${wanted.reason}`)
    await settleAlert(deps, async () => ({ about: wanted, wanted: { ...wanted, sinceMs: nowMs }, reliedOn: [] }))
    putBack.setAside(nowMs)
  } catch (error) {
    deps.log.error({ err: error }, 'that the newer store was put back could not be told; the next start tries again')
  }
}
