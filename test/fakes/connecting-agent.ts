// What of an agent connects: real clocks, sockets and files, names that lead where the test says, and a board that keeps
// what was said last.

import type { ConnectingAgent } from '#agent/link/connect-at.ts'
import { memoryCredentialStore } from '#agent/state/credential-store.ts'
import { openKeeper } from '#agent/state/identity-keeper.ts'
import { openJudgedClock } from '#agent/core/judged-clock.ts'
import { openKnownAddresses } from '#agent/link/known-addresses.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import { openVitals } from '#agent/core/vitals.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import type { Resolve } from '#platform/resolve-name.ts'
import { systemTimers } from '#platform/timers.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'

export type TestConnectingAgent = ConnectingAgent & { readonly troubles: ReadonlyMap<string, Trouble> }

export const connectingAgent = (
  t: Scope,
  resolve: Resolve = () => Promise.resolve(['127.0.0.1']),
  stateFolder: string = tempFolder(t),
): TestConnectingAgent => {
  const troubles = new Map<string, Trouble>()
  const nothing = (): void => undefined
  return {
    clock: openJudgedClock(systemClock),
    timers: systemTimers,
    random: systemRandom,
    log: silentLog,
    resolve,
    addresses: openKnownAddresses(stateFolder),
    keeper: openKeeper(memoryCredentialStore),
    vitals: openVitals(systemClock),
    troubles,
    board: {
      phase: nothing,
      facts: nothing,
      channel: nothing,
      source: nothing,
      news: nothing,
      attempt: nothing,
      success: nothing,
      close: nothing,
      conditions: () => [],
      story: () => [],
      trouble: (place, what) => void troubles.set(place, what),
      clear: (place) => void troubles.delete(place),
      withdraw: (code) => {
        for (const [place, what] of troubles) if (what.code === code) troubles.delete(place)
      },
    },
  }
}
