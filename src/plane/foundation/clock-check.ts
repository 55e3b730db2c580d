// A clock that is wrong when a plane starts: what can be found before anything is signed by it.

import { durationWords } from '#domain/core/in-words.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import type { Store } from '#plane/store/contract/store.ts'

/** The plane does not start: what it decided and signed by this clock would be wrong. */
export class ClockOff extends Error {
  readonly code = 'CLOCK_OFF'
  readonly next: string

  constructor(message: string, next = 'Set the clock of this machine, then start the plane: timedatectl set-ntp true') {
    super(message)
    this.name = 'ClockOff'
    this.next = next
  }
}

/** What exists cannot begin later than now. An issuing CA from the future is replaced, where the root's key is here. */
export const refuseBeforeAuthority = async ({
  store,
  custody,
  clock,
}: {
  readonly store: Pick<Store, 'issuers'>
  readonly custody: Pick<KeyCustody, 'has'>
  readonly clock: Clock
}): Promise<void> => {
  const serving = (await store.issuers()).map(({ value }) => value).filter(({ retiredAtMs }) => retiredAtMs === null)
  const nowMs = clock.nowMs()
  const root = serving.find(({ role }) => role === 'root')
  if (root === undefined) return
  const rootOnline = custody.has({ role: 'root', id: root.id })
  const future = serving.find(
    ({ role, notBeforeMs }) => nowMs < notBeforeMs && (role === 'root' || (role === 'issuing' && !rootOnline)),
  )
  if (future === undefined) return
  const what = future.role === 'root' ? 'root' : 'issuing CA'
  throw new ClockOff(
    `the clock of this machine says ${isoTime(nowMs)}, and the ${what} of this domain began ${isoTime(future.notBeforeMs)}`,
  )
}

const toleratedMs = 5 * 60_000

/**
 * The embedded store has no other clock to compare with. An entry from before this start that is dated later than now shows that
 * the clock is behind, or was ahead then. Which of the two is unknown, so it is a warning and nothing is refused.
 */
export const openClockWarning = async ({
  store,
  clock,
}: {
  readonly store: Pick<Store, 'journal'>
  readonly clock: Clock
}): Promise<() => readonly string[]> => {
  const [newest] = await store.journal.read({ after: null, last: 1, limit: 1, node: null, type: null })
  const newestMs = newest?.entry.atMs ?? 0
  return () => {
    const aheadMs = newestMs - clock.nowMs()
    if (aheadMs <= toleratedMs) return []
    return [
      `clock: the journal was written up to ${isoTime(newestMs)}, which is ${durationWords(aheadMs)} from now: ` +
        'the clock of this machine is behind, or was ahead then',
    ]
  }
}
