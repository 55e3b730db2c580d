// A revocation cuts channels on every replica. Each keeps for a while how many channels a withdrawal has cut here, so that the
// replica that collects the proofs can write it into the receipt.

import type { Replicas } from '#plane/store/contract/replicas.ts'
import type { Committed } from '#plane/store/contract/store.ts'
import { answerReplicas, askReplica, withdrawnQuestion } from '#plane/cluster/replica-questions.ts'
import type { Core } from '#plane/core/core.ts'

export type CutCounts = {
  /** Records how many channels were cut here for this withdrawal. */
  count(committed: Committed, channels: number): void
  /** As `OpenChannels.cutOn`. */
  on(replica: number, receipt: string): Promise<number | null>
}

/** How long a question waits for the commit that it is about. */
const withinMs = 1000
const lookEveryMs = 50
const mostRemembered = 1024

export const openCutCounts = (
  { clock, timers, log }: Pick<Core, 'clock' | 'timers' | 'log'>,
  replicas: Pick<Replicas, 'ask' | 'onQuestion' | 'self' | 'behindMs'>,
): CutCounts => {
  const cut = new Map<string, number>()
  const waiting = new Map<string, Set<(channels: number | null) => void>>()

  /**
   * A commit from before the question is known once the replica has read everything of a later moment: also on a replica that has
   * started since and loaded the denials, or that has a new number.
   */
  const knownSince = (askedMs: number): boolean => {
    const behindMs = replicas.behindMs()
    return behindMs !== null && behindMs <= clock.monotonicMs() - askedMs
  }
  const wait = (receipt: string): Promise<number | null> => {
    const askedMs = clock.monotonicMs()
    if (knownSince(askedMs)) return Promise.resolve(0)
    return new Promise((resolve) => {
      const waiters = waiting.get(receipt) ?? new Set()
      const over = (channels: number | null): void => {
        stopLooking()
        cancel()
        waiters.delete(over)
        if (waiters.size === 0) waiting.delete(receipt)
        resolve(channels)
      }
      const stopLooking = timers.every(lookEveryMs, () => {
        if (knownSince(askedMs)) over(0)
      })
      const cancel = timers.after(withinMs, () => over(null))
      waiting.set(receipt, waiters.add(over))
    })
  }
  const here = async (receipt: string): Promise<number | null> => cut.get(receipt) ?? (await wait(receipt))
  answerReplicas(replicas, withdrawnQuestion, ({ receipt }) => here(receipt))

  const ask = async (replica: number, receipt: string): Promise<number | null> => {
    const asked = await askReplica(replicas, replica, withdrawnQuestion, { receipt }, withinMs)
    return asked.kind === 'answer' ? asked.value : null
  }

  return {
    count({ writes }, channels) {
      // Its row is written again as its proofs come in: only the first time is the withdrawal itself.
      for (const write of writes) {
        if (write.put !== 'receipt' || cut.has(write.value.id)) continue
        cut.set(write.value.id, channels)
        for (const tell of waiting.get(write.value.id) ?? []) tell(channels)
      }
      for (const oldest of cut.keys()) {
        if (cut.size <= mostRemembered) break
        cut.delete(oldest)
      }
    },
    on: (replica, receipt) =>
      (replica === replicas.self ? here(receipt) : ask(replica, receipt)).catch((error: unknown) => {
        log.warn({ err: error, replica }, 'a replica could not be asked about a withdrawal')
        return null
      }),
  }
}
