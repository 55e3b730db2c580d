// Asks an outside issuer for one signature, within time limits. What could not be sent is sent again as it was; after a connection that died
// one more attempt is made, under another serial. An answer that is none is no reason to ask again: it would be the same.

import { boundedText } from '#domain/core/change.ts'
import type { Core } from '#plane/core/core.ts'
import { sleep } from '#platform/timers.ts'
import { IssuerFault } from '#plane/outside/issuer-client.ts'
import type { Attempt, OutsideSigner, Returned, Unsent, Unsigned } from './outside-signer.ts'

/** `fault`: whether it was signed is not known. `died`: the connection ended before there was an answer. */
export type Answered =
  Returned | Unsent | Unsigned | { readonly kind: 'fault'; readonly why: string; readonly died: boolean }

/** To connect and to be answered. */
const withinMs = 20_000
/** A connection that dies sooner was mostly dead before, and kept from an earlier request; later, it is the issuer that ends. */
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
    if (answer.kind !== 'fault' || !answer.died || clock.monotonicMs() - startedMs >= soonMs) return answer
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
    stop.signal.addEventListener('abort', () =>
      resolve({ kind: 'fault', why: `no answer within ${withinMs} ms`, died: false }),
    )
  })
  const cancel = timers.after(withinMs, () => stop.abort(), 'background')
  try {
    // A signer that does not heed the signal must not hold the caller.
    return await Promise.race([signer.sign(attempt, stop.signal), late])
  } catch (error) {
    const why = boundedText(error instanceof Error ? error.message : String(error))
    return { kind: 'fault', why, died: error instanceof IssuerFault && error.code === 'cut' }
  } finally {
    cancel()
  }
}
