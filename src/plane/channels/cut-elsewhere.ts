// A revocation cuts channels on every replica. Each remembers for a while which operations have cut what here, so that
// the one that was asked to revoke can say in its receipt what became of it.

import type { Log } from '#platform/log.ts'
import type { Timers } from '#platform/timers.ts'
import type { CutElsewhere } from '#plane/flows/open-channels.ts'
import type { Replicas } from '#plane/store/replicas.ts'
import type { Committed } from '#plane/store/store.ts'
import { answerReplicas, askReplica, cutQuestion } from './replica-questions.ts'

export type CutRecord = {
  /** So many channels were cut here when this was heard of. */
  heard(committed: Committed, channels: number): void
  elsewhere(operation: string): Promise<CutElsewhere>
}

export type CutRecordDeps = {
  readonly replicas: Pick<Replicas, 'ask' | 'onQuestion' | 'leased' | 'self' | 'count'>
  readonly timers: Timers
  readonly log: Log
}

/** How long a receipt waits for others. */
const withinMs = 1000
const mostRemembered = 1024

export const openCutRecord = ({ replicas, timers, log }: CutRecordDeps): CutRecord => {
  const cut = new Map<string, number>()
  const waiting = new Map<string, Set<(channels: number) => void>>()

  const wait = (operation: string): Promise<number | null> =>
    new Promise((resolve) => {
      const waiters = waiting.get(operation) ?? new Set()
      const over = (channels: number | null): void => {
        cancel()
        waiters.delete(over)
        if (waiters.size === 0) waiting.delete(operation)
        resolve(channels)
      }
      const cancel = timers.after(withinMs, () => over(null))
      waiting.set(operation, waiters.add(over))
    })
  answerReplicas(replicas, cutQuestion, async ({ operation }) => cut.get(operation) ?? (await wait(operation)))

  const askOthers = async (operation: string): Promise<CutElsewhere> => {
    const others = (await replicas.leased()).filter(({ number }) => number !== replicas.self)
    const asked = await Promise.all(
      others.map(({ number }) => askReplica(replicas, number, cutQuestion, { operation }, withinMs)),
    )
    let channels = 0
    let unconfirmed = 0
    for (const answer of asked) {
      if (answer.kind === 'answer' && answer.value !== null) channels += answer.value
      else if (answer.kind !== 'gone') unconfirmed++
    }
    return { channels, unconfirmed }
  }

  return {
    heard({ origin, writes, entries }, channels) {
      if (origin === 'here' || !writes.some(({ put }) => put === 'denial')) return
      for (const { entry } of entries) {
        const { operation } = entry
        cut.set(operation, channels)
        for (const tell of waiting.get(operation) ?? []) tell(channels)
      }
      for (const oldest of cut.keys()) {
        if (cut.size <= mostRemembered) break
        cut.delete(oldest)
      }
    },
    elsewhere: (operation) =>
      askOthers(operation).catch((error: unknown) => {
        log.warn({ err: error }, 'other replicas could not be asked about a revocation')
        return { channels: 0, unconfirmed: replicas.count() - 1 }
      }),
  }
}
