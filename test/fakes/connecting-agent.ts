// What of an agent connects: real clocks, sockets and files, names that lead where the test says, and a record in memory.

import type { ConnectingAgent } from '#agent/link/connect-at.ts'
import { memoryCredentialStore } from '#agent/state/credential-store.ts'
import { openKeeper } from '#agent/state/identity-keeper.ts'
import { openJudgedClock } from '#agent/core/judged-clock.ts'
import { openRecord } from '#agent/diagnostics/record.ts'
import type { StatusTrouble } from '#agent/diagnostics/status-file.ts'
import { openKnownAddresses } from '#agent/link/known-addresses.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import type { Resolve } from '#platform/resolve-name.ts'
import { systemTimers } from '#platform/timers.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

export type TestConnectingAgent = ConnectingAgent & {
  /** As they stand now, by place. */
  readonly troubles: Pick<ReadonlyMap<string, StatusTrouble>, 'get' | 'has' | 'size'>
}

export const connectingAgent = (
  t: Scope,
  resolve: Resolve = () => Promise.resolve(['127.0.0.1']),
  stateFolder: string = tempFolder(t),
): TestConnectingAgent => {
  const record = openRecord(systemClock, { pressure: () => false })
  const troubles = (): ReadonlyMap<string, StatusTrouble> =>
    new Map(record.now().status.troubles.map((what) => [what.place, what]))
  return {
    clock: openJudgedClock(systemClock),
    timers: systemTimers,
    random: systemRandom,
    log: silentLog,
    resolve,
    addresses: openKnownAddresses(stateFolder),
    keeper: openKeeper(memoryCredentialStore),
    record,
    troubles: {
      get: (place) => troubles().get(place),
      has: (place) => troubles().has(place),
      get size() {
        return troubles().size
      },
    },
  }
}
