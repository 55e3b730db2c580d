// Asks every second, by the clock the agent believes, whether the certificate is due: no timer can carry months, machines
// sleep, and clocks get set. What failed is known before anything is tried again.

import { isoTime } from '#platform/clock.ts'
import { afterRefusal } from '#agent/link/after-refusal.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { reviewClock } from '#agent/link/learn-time.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { nudgedPause } from '#agent/core/pause.ts'
import type { RunEnd } from '#agent/core/outcome.ts'
import { reasonToRecover } from '#agent/recovery/way-back.ts'
import { openClockCheck } from './clock-check.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { trustOf } from '#agent/state/trust.ts'
import { mayReplace } from './late-registration.ts'
import { renewWithin, type RenewingAgent } from './renew.ts'
import {
  jitterOf,
  lookEveryMs,
  renewalIsDue,
  renewAtMs,
  renewRetryMs,
  slotWaitMs,
  spreadMs,
  type LastTry,
} from '#agent/state/should-renew.ts'
import type { StorageReporter } from './report-storage.ts'

type RenewedAgent = RenewingAgent & Pick<AgentParts, 'nudge' | 'episode' | 'bundles'>

export const keepRenewed = async (
  agent: RenewedAgent,
  identityNow: () => Identity,
  reporter: StorageReporter,
): Promise<RunEnd> => {
  const { clock, nudge, record } = agent
  let failures = 0
  let lastTry: LastTry | null = null
  /** The last exchange that had succeeded when an attempt found the plane unreachable: a later one means that it is back. */
  let exchangeBefore: { readonly atMs: number | null } | null = null
  let shown: Identity | null = null
  let nudges = nudge.count()
  /** When to renew once more, for what the last renewal found missing. */
  let againAtMs: number | null = null
  const doubt = openClockCheck(agent)
  for (; !agent.signal.aborted; await nudgedPause(agent, lookEveryMs(identityNow().current))) {
    await reporter.check()
    reviewClock(agent)
    const identity = identityNow()
    if (identity !== shown) showIdentity(agent, identity)
    shown = identity
    const end = reasonToRecover(agent, identity)
    if (end !== null) return { kind: 'rejoin', trouble: end, afterMs: 0 }

    doubt.look(identity.clockToleranceMs)
    const nowMs = clock.nowMs()
    const remainingMs = identity.current.notAfterMs - nowMs
    if (exchangeBefore !== null && record.now().figures.lastExchangeMs !== exchangeBefore.atMs) {
      lastTry = { atMs: nowMs, delayMs: spreadMs(remainingMs, agent.random.unit()) }
      exchangeBefore = null
    }
    const again = againAtMs !== null && clock.monotonicMs() >= againAtMs
    if (again) againAtMs = null
    const rotates = rotationDue(agent, identity)
    const nudged = nudge.count() !== nudges || again || rotates
    nudges = nudge.count()
    // Another source renews its own.
    if (identity.source !== 'plane' || (!nudged && !renewalIsDue(nowMs, dueAtMs(identity), lastTry))) continue

    const unsettled = await doubt.settle(identity)
    // Looked at again, in the light of what the plane may have said.
    if (unsettled === null && !nudged && !renewalIsDue(clock.nowMs(), dueAtMs(identity), lastTry)) continue
    const patienceMs = Math.max(leastPatienceMs, remainingMs / 4)
    const outcome = unsettled ?? (await renewWithin(agent, identity, patienceMs))
    // A request from before the key was asked for goes first.
    if (rotates && (outcome.kind !== 'renewed' || outcome.broughtKey))
      agent.rotation.tried(outcome.kind === 'renewed' ? notTaken : rotationFailure(outcome))
    if (outcome.kind === 'renewed') {
      againAtMs = outcome.lacksRecovery
        ? clock.monotonicMs() + registerAfterMs(identityNow(), agent.random.unit())
        : null
      agent.log.info({ serial: outcome.serial, persisted: outcome.persisted }, 'certificate renewed')
      agent.record.success('renewal', `The certificate was renewed: ${outcome.serial}.`)
      if (agent.episode.channelIsOpen()) agent.episode.over()
      failures = 0
      exchangeBefore = null
      lastTry = { atMs: nowMs, delayMs: shortestLifeMs(identityNow()) }
      continue
    }
    if (outcome.kind === 'stopped') break
    record.count({ kind: 'renewal-failed', trouble: outcome.trouble })
    const over = endBecauseOf(outcome)
    if (over !== null) return over
    failures += 1
    exchangeBefore = outcome.kind === 'refused' ? null : { atMs: record.now().figures.lastExchangeMs }
    const retryMs = renewRetryMs(failures, remainingMs, agent.random.unit())
    lastTry = { atMs: nowMs, delayMs: Math.max(retryMs, slotOf(outcome, identity, nowMs)) }
    agent.record.trouble('renewal', outcome.trouble, nowMs + lastTry.delayMs)
    agent.log.warn(
      { code: outcome.trouble.code, next: outcome.trouble.next, nextTry: isoTime(nowMs + lastTry.delayMs) },
      outcome.trouble.text,
    )
  }
  return { kind: 'stopped' }
}

/** A task has asked for a new recovery key. Where this plane or this identity cannot have one, it is said at once. */
const rotationDue = ({ rotation }: RenewedAgent, identity: Identity): boolean => {
  if (rotation.wanted() === null) return false
  if (identity.source === 'plane' && identity.recovery?.credential.kind === 'key' && mayReplace(identity)) return true
  rotation.tried('The plane replaces no recovery key of this node')
  return false
}

const notTaken = 'The certificate was renewed, and the plane has not taken the new recovery key'

/** The request is kept: the renewal that repeats it may still register the key. */
const rotationFailure = (failure: PlaneFailure): string =>
  failure.kind === 'stopped' ? 'The agent was stopped' : `The renewal failed: ${failure.trouble.text}`

/** However little is left, a try gets the time of a handshake across the world. */
const leastPatienceMs = 3_000

const dueAtMs = ({ current, profile }: Identity): number =>
  renewAtMs(current, { renewFrom: profile.renew_from, renewTo: profile.renew_to }, jitterOf(current.serial))

/** To a clock that is hours fast every new certificate is due at once: it is not renewed every second for that. */
const shortestLifeMs = ({ current }: Identity): number => (current.notAfterMs - current.issuedAtMs) / 8

/** Soon, with jitter: other agents got the same answer at the same moment. */
const registerAfterMs = (identity: Identity, jitterUnit: number): number =>
  Math.min(10_000, shortestLifeMs(identity)) * (1 - jitterUnit / 2)

const slotOf = (failure: PlaneFailure, { current }: Identity, nowMs: number): number =>
  failure.kind === 'refused' ? slotWaitMs(failure.retryAfterMs, current.notAfterMs - nowMs) : 0

const endBecauseOf = (failure: Exclude<PlaneFailure, { kind: 'stopped' }>): RunEnd | null => {
  if (failure.kind !== 'refused') return null
  switch (afterRefusal[failure.retry].use) {
    case 'revoked':
      return { kind: 'revoked', trouble: failure.trouble }
    case 'rejoin':
      return { kind: 'rejoin', trouble: failure.trouble, afterMs: failure.retryAfterMs ?? 0 }
    // The channel meets the same refusal, and goes back to the certificate before where there is one.
    case 'unknown-certificate':
    case 'soon':
    case 'slow':
      return null
  }
}

const showIdentity = ({ record, config }: Pick<RenewedAgent, 'record' | 'config'>, identity: Identity): void => {
  const { plane, recovery, certificate } = trustOf(identity)
  const inMemory = config.keyStorage === 'memory' || identity.profile.key_storage !== 'file'
  record.source(identity.source)
  record.facts({
    node_id: identity.nodeId,
    domain: identity.domain,
    profile: identity.profile.name,
    certificate: {
      serial: identity.current.serial,
      not_after: isoTime(identity.current.notAfterMs),
      renew_at: isoTime(dueAtMs(identity)),
      key: inMemory ? 'memory' : 'file',
    },
    trust: { plane: [...plane], recovery: [...recovery], certificate },
  })
}
