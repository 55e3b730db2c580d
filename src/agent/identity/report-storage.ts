// Reports to the plane that the agent has the certificate, and whether the disk has it too. A certificate that
// is on the disk is confirmed by its first use, the channel; a call is made where no channel opens, or the disk has a fault. A
// failed write is repeated until it works, and reported again then. A disk that is full or read-only is reported before a write
// fails.

import { identityApi } from '#wire/identity/identity-api.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { dropUsedJoin } from '#agent/enrollment/join-source.ts'
import { callPlane, type CallingAgent } from '#agent/link/plane-client.ts'
import { provenCurrent, type Identity } from '#agent/state/credentials.ts'

type StoringAgent = CallingAgent & Pick<AgentParts, 'lastConfig' | 'storage'>

export type StorageReporter = { check(): Promise<void> }

const retryEveryMs = 10_000
/** How long a new certificate that is on the disk waits for its channel, before it is confirmed by a call of its own. */
const channelWithinMs = 10_000

export const storageReporter = (agent: StoringAgent, identityNow: () => Identity): StorageReporter => {
  const { keeper, lastConfig, record, log, clock, storage } = agent
  const isPersisted = (): boolean => keeper.isPersisted() && lastConfig.isPersisted()
  // A certificate that has worked before was confirmed by that.
  let reported: boolean | null = identityNow().current.proven ? true : null
  let detail = 'the state folder cannot be written'
  let retriedAtMs = -Infinity
  let reportedAtMs = -Infinity
  let saidCode: string | null = null
  const startedAtMs = clock.monotonicMs()
  /** The plane learns of the certificate by the channel that is opening, which costs one handshake less than a call. */
  const isLeftToChannel = (): boolean =>
    reported === null && !identityNow().current.proven && clock.monotonicMs() - startedAtMs < channelWithinMs

  const writeAgain = (): void => {
    if (isPersisted() || clock.monotonicMs() - retriedAtMs < retryEveryMs) return
    retriedAtMs = clock.monotonicMs()
    const kept = [keeper.retry(), lastConfig.retry()].find((result) => !result.persisted)
    if (kept?.persisted === false) {
      detail = kept.detail
      const what = storage.notKept(kept, 'What the plane sent is only in memory')
      saidCode = what.code
      return record.trouble('storage', what, clock.nowMs() + retryEveryMs)
    }
    log.info('the configuration of the plane was written to disk')
    dropUsedJoin(agent, identityNow())
  }
  const look = (): void => {
    storage.check()
    if (!isPersisted()) return
    const fault = storage.fault()
    if (fault === null) {
      saidCode = null
      return record.clear('storage')
    }
    // Once: what stays as it is does not happen again every second.
    if (fault.code === saidCode) return
    saidCode = fault.code
    record.trouble('storage', fault, null)
    log.warn({ code: fault.code, next: fault.next }, fault.text)
  }

  return {
    check: async () => {
      writeAgain()
      look()
      const persisted = isPersisted()
      if (persisted && isLeftToChannel()) return
      if (persisted && reported === null && identityNow().current.proven) reported = true
      if (reported === persisted || clock.monotonicMs() - reportedAtMs < retryEveryMs) return
      reportedAtMs = clock.monotonicMs()
      const identity = identityNow()
      const json = persisted ? { persisted } : { persisted, detail: detail.slice(0, 256) }
      const answer = await callPlane(agent, identity, { endpoint: identityApi.confirm, json })
      if (answer.kind === 'stopped') return
      if (answer.kind !== 'answer')
        return log.warn({ code: answer.trouble.code }, `not confirmed: ${answer.trouble.text}`)
      reported = persisted
      log.info({ membership: answer.value.membership, persisted }, 'confirmed')
      markProven(agent, identity.current.serial)
    },
  }
}

/** The plane has accepted this certificate: the previous generation is no longer needed. */
export const markProven = ({ keeper }: Pick<AgentParts, 'keeper'>, serial: string): void => {
  const { identity, request } = keeper.credentials()
  if (identity === null || identity.current.serial !== serial || identity.current.proven) return
  keeper.keep({ identity: provenCurrent(identity), request })
}
