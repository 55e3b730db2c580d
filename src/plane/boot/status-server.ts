// The status listener (OCSP, CRL), put together.

import { openOcsp } from '#plane/ca/answer-ocsp.ts'
import { openCallerBudget, sharedLimits } from '#plane/limits/caller-budget.ts'
import type { Core } from '#plane/core/core.ts'
import type { KeyCustody } from '#plane/keys/key-custody.ts'
import { dropEndedListKeys } from '#plane/authority/list-signer.ts'
import { dropEndedResponders } from '#plane/authority/responder.ts'
import { openResponders } from '#plane/ca/responders.ts'
import { openRevocationLists, type RevocationLists } from '#plane/ca/revocation-lists.ts'
import { deltaListPath } from '#plane/authority/ca-signer.ts'
import type { LivedTime } from '#plane/core/lived-time.ts'
import { openStatusListener, type StatusListener } from '#plane/ca/status-listener.ts'
import type { StatusMeasures } from '#plane/metrics/measure-status.ts'
import { openSteadyTime } from '#plane/core/steady-time.ts'
import type { TurnedAway } from './turned-away.ts'
import type { UpkeepTask } from '#plane/core/upkeep.ts'

export type StatusServerParts = {
  readonly custody: KeyCustody
  /** The public URL of the listener; null: certificates do not name it. */
  readonly statusUrl: string | null
  readonly measures: StatusMeasures
  readonly turnedAway: TurnedAway
  readonly lived: LivedTime
}

export type StatusServer = {
  readonly lists: RevocationLists
  readonly listener: StatusListener
  readonly upkeep: readonly UpkeepTask[]
}

/** One who verifies a certificate asks once a handshake; a thousand a second is a large fleet meeting a larger one. */
const limits = { perMinute: 60_000, perMinutePerSource: 6000 }
const connections = 128

export const openStatusServer = (core: Core, parts: StatusServerParts): StatusServer => {
  const { store, clock } = core
  const { custody, statusUrl, measures, turnedAway, lived } = parts
  const steadyMs = openSteadyTime(clock)
  const lists = openRevocationLists(core, {
    custody,
    steadyMs,
    livedMs: () => lived.nowMs(),
    deltaUrlOf: (issuer) => (statusUrl === null ? null : `${statusUrl}${deltaListPath(issuer)}`),
    onBuilt: measures.listMade,
  })
  const listener = openStatusListener(core, {
    answerOcsp: openOcsp(core, openResponders(core, custody)),
    lists,
    budget: openCallerBudget(clock, () => sharedLimits(limits, store.replicas.count())),
    limits: turnedAway.limits('status', { connections, perCaller: null }),
    onAborted: (source) => turnedAway.aborted('status', source),
    onOcsp: measures.answered,
    onOverLimit: measures.overLimit,
  })
  const upkeep: readonly UpkeepTask[] = [
    { name: 'revocation lists', where: 'each', everyMs: 60_000, run: () => lists.settle() },
    {
      name: 'responders',
      where: 'leader',
      everyMs: 3_600_000,
      run: async (asLeader) => dropEndedResponders({ custody, store: asLeader, nowMs: await lived.nowMs() }),
    },
    {
      name: 'keys of retired issuers',
      where: 'leader',
      everyMs: 3_600_000,
      run: async (asLeader) => dropEndedListKeys({ custody, store: asLeader, nowMs: await lived.nowMs() }),
    },
  ]
  return { lists, listener, upkeep }
}
