// Asks an outside issuer for one signature, within time limits. What could not be sent is sent again as it was; after a connection that died
// one more attempt is made, under another serial.

import { boundedText } from '#domain/core/change.ts'
import type { Core } from '#plane/core/core.ts'
import { sleep } from '#platform/timers.ts'
import type { Attempt, OutsideSigner, Returned, Unsent, Unsigned } from './outside-signer.ts'

/** `fault`: whether it was signed is not known. */
export type Answered = Returned | Unsent | Unsigned | { readonly kind: 'fault'; readonly why: string }

/** To connect and to be answered. */
const withinMs = 20_000
/** A fault that shows sooner is mostly a connection that died, and never an issuer that is slow. */
const soonMs = 2000
const sendTries = 3
const apartMs = 200

/** `again`: commits one more attempt, and answers its serial; null: there is none to be made. */
export const askToSign = async (
  core: Pick<Core, 'clock' | 'timers'>,
  signer: Pick<OutsideSigner, 'sign'>,
  first: Attempt,
  again: (why: string) => Promise<Pick<Attempt, 'serial'> | null>,
): Promise<Answered> => {
  const { clock } = core
  let attempt = first
  for (;;) {
    const startedMs = clock.monotonicMs()
    const answer = await sent(core, signer, attempt)
    if (answer.kind !== 'fault' || clock.monotonicMs() - startedMs >= soonMs) return answer
    const next = await again(answer.why)
    if (next === null) return answer
    attempt = { ...attempt, serial: next.serial }
  }
}

const sent = async (
  core: Pick<Core, 'clock' | 'timers'>,
  signer: Pick<OutsideSigner, 'sign'>,
  attempt: Attempt,
): Promise<Answered> => {
  for (let tried = 1; ; tried++) {
    const answer = await inTime(core, signer, attempt)
    if (answer.kind !== 'unsent' || tried === sendTries) return answer
    await sleep(core.timers, apartMs)
  }
}

const inTime = async (
  { timers }: Pick<Core, 'timers'>,
  signer: Pick<OutsideSigner, 'sign'>,
  attempt: Attempt,
): Promise<Answered> => {
  const stop = new AbortController()
  const late = new Promise<Answered>((resolve) => {
    stop.signal.addEventListener('abort', () => resolve({ kind: 'fault', why: `no answer within ${withinMs} ms` }))
  })
  const cancel = timers.after(withinMs, () => stop.abort(), 'background')
  try {
    // A signer that does not heed the signal must not hold the caller.
    return await Promise.race([signer.sign(attempt, stop.signal), late])
  } catch (error) {
    return { kind: 'fault', why: boundedText(error instanceof Error ? error.message : String(error)) }
  } finally {
    cancel()
  }
}
