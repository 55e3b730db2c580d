// Asks every second, by the wall clock, whether the certificate is due: no timer can carry months, machines sleep, and
// clocks get set.

import { isoTime } from '#platform/clock.ts'
import type { AgentParts } from '../agent-deps.ts'
import { pause } from '../pause.ts'
import type { PlaneFailure } from '../plane-failure.ts'
import { afterRefusedUse, type SessionEnd } from '../session-end.ts'
import type { Identity } from './credentials.ts'
import { renewOnce } from './renew.ts'
import { jitterOf, renewalIsDue, renewAtMs, renewRetryMs, type LastTry } from './should-renew.ts'
import type { StorageReporter } from './report-storage.ts'

const tickMs = 1_000

export const keepRenewed = async (
  agent: AgentParts,
  identityNow: () => Identity,
  reporter: StorageReporter,
): Promise<SessionEnd> => {
  let failures = 0
  let lastTry: LastTry | null = null
  let shown: Identity | null = null
  for (; !agent.signal.aborted; await pause(agent.timers, tickMs, agent.signal)) {
    await reporter.check()
    const identity = identityNow()
    if (identity !== shown) showIdentity(agent, identity)
    shown = identity
    const nowMs = agent.clock.nowMs()
    if (!renewalIsDue(nowMs, dueAtMs(identity), lastTry)) continue
    const outcome = await renewOnce(agent, identity)
    if (outcome.kind === 'renewed') {
      agent.log.info({ serial: outcome.serial, persisted: outcome.persisted }, 'certificate renewed')
      agent.board.clear('renewal')
      failures = 0
      lastTry = { atMs: nowMs, delayMs: shortestLifeMs(identityNow()) }
      continue
    }
    if (outcome.kind === 'stopped') break
    const end = endBecauseOf(outcome)
    if (end !== null) return end
    failures += 1
    const retryMs = renewRetryMs(failures, identity.current.notAfterMs - nowMs, agent.random.unit())
    lastTry = { atMs: nowMs, delayMs: Math.max(retryMs, slotOf(outcome, identity, nowMs)) }
    agent.board.trouble('renewal', outcome.trouble, nowMs + lastTry.delayMs)
    agent.log.warn(
      { code: outcome.trouble.code, next: outcome.trouble.next, nextTry: isoTime(nowMs + lastTry.delayMs) },
      outcome.trouble.text,
    )
  }
  return { kind: 'stopped' }
}

const dueAtMs = ({ current, profile }: Identity): number =>
  renewAtMs(current, { renewFrom: profile.renew_from, renewTo: profile.renew_to }, jitterOf(current.serial))

/** To a clock that is hours fast every new certificate is due at once: it is not renewed every second for that. */
const shortestLifeMs = ({ current }: Identity): number => (current.notAfterMs - current.issuedAtMs) / 8

/** The slot the plane asked for, unless it would use up half of what is left. */
const slotOf = (failure: PlaneFailure, { current }: Identity, nowMs: number): number =>
  failure.kind === 'refused' && failure.retryAfterMs !== null
    ? Math.min(failure.retryAfterMs, Math.max(0, (current.notAfterMs - nowMs) / 2))
    : 0

const endBecauseOf = (failure: Exclude<PlaneFailure, { kind: 'stopped' }>): SessionEnd | null => {
  if (failure.kind !== 'refused') return null
  switch (afterRefusedUse(failure.code)) {
    case 'revoked':
      return { kind: 'revoked', trouble: failure.trouble }
    case 'rejoin':
      return { kind: 'rejoin', trouble: failure.trouble }
    // The channel meets the same refusal, and goes back to the certificate before where there is one.
    case 'unknown-certificate':
    case 'soon':
    case 'slow':
      return null
  }
}

const showIdentity = ({ board, config }: AgentParts, identity: Identity): void => {
  const inMemory = config.keyStorage === 'memory' || identity.profile.key_storage !== 'file'
  board.facts({
    node_id: identity.nodeId,
    domain: identity.domain,
    profile: identity.profile.name,
    certificate: {
      serial: identity.current.serial,
      not_after: isoTime(identity.current.notAfterMs),
      renew_at: isoTime(dueAtMs(identity)),
      key: inMemory ? 'memory' : 'file',
    },
  })
}
