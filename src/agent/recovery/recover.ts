// With an identity that the plane no longer accepts, the agent recovers (ruling 6), and retries for as long as that can help. It
// never avoids a refusal: where only an operator can help it retries slowly, and it uses a new join string or repair bundle as
// soon as one is there.

import { isoTime } from '#platform/clock.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { enrolledAs, withRequest, type Identity } from '#agent/state/credentials.ts'
import type { Provided } from '#agent/state/provider.ts'
import { reviewClock } from '#agent/link/learn-time.ts'
import { firstRecoveryMs, nextTry, type NextTry } from '#agent/link/next-try.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import type { Story } from './episode.ts'
import { recoverOnce, type RecoveringAgent } from './recover-once.ts'
import { isInvited, waitForCredential, type CredentialWatcher } from './wait-for-credential.ts'
import { wayBack, type WayBack } from './way-back.ts'

export type RecoveryAgent = RecoveringAgent & CredentialWatcher & Pick<AgentParts, 'lastConfig'>

/** `story`: what made it necessary. Not ours where there is nothing to recover with. */
export const recover = async (agent: RecoveryAgent, story: Story): Promise<Provided> => {
  let attempt = 0
  let lastCode: string | null = null
  let keyTypes: readonly string[] | null = null
  await keepDistance(agent)
  while (!agent.signal.aborted) {
    const way = wayBack(agent)
    if (way === null) return { kind: 'not-mine' }
    agent.record.phase('rejoining')
    reviewClock(agent)
    agent.record.attempt('recovery', `Recover the identity of ${way.node} (${way.credential.kind}).`)
    agent.record.count({ kind: 'recovery-tried', because: story.trouble.class ?? 'endpoint_unreachable' })
    const tried = await recoverOnce(agent, way, story, keyTypes)
    if (tried.kind === 'given') return accept(agent, tried.identity, way, story)
    if (tried.kind === 'needless') return abandon(agent)
    if (tried.kind === 'stopped') break
    agent.record.count({ kind: 'recovery-failed', trouble: tried.trouble })
    attempt = tried.trouble.code === lastCode ? attempt + 1 : 0
    lastCode = tried.trouble.code
    const next = nextTry('recover', tried, attempt, agent.random.unit())
    if (next.kind !== 'wait') return withoutWaiting(agent, next, tried)
    if (next.orEnroll && isInvited(agent) && way.credential.kind !== 'repair') return { kind: 'not-mine' }
    tell(agent, tried, next, story)
    if (next.forget === 'key') agent.keeper.keep(withRequest(agent.keeper.credentials(), null))
    if (tried.kind === 'refused' && tried.keyTypes.length > 0) keyTypes = tried.keyTypes
    if (next.forget === 'bundle') withoutBundle(agent, way)
    const arrived = await waitForCredential(agent, next.waitMs)
    if (arrived === 'join') return { kind: 'not-mine' }
    if (arrived === 'bundle') lastCode = null
  }
  return { kind: 'failed', outcome: { kind: 'stopped' } }
}

/** Spreads the recoveries of a fleet. Not for a repair bundle: a person waits for it, and only this machine has one. */
const keepDistance = async (agent: RecoveryAgent): Promise<void> => {
  const { identity } = agent.keeper.credentials()
  const way = wayBack(agent)
  if (identity === null || way === null || way.credential.kind === 'repair') return
  agent.record.phase('rejoining')
  await waitForCredential(agent, firstRecoveryMs(identity.profile.lifetime_ms, agent.random.unit()))
}

const accept = (agent: RecoveryAgent, identity: Identity, way: WayBack, story: Story): Provided => {
  const former = agent.keeper.credentials().identity
  agent.lastConfig.outdate()
  const kept = agent.keeper.keep(enrolledAs(identity))
  agent.reached('recover: identity kept')
  agent.episode.begunAnew(former !== null && sameRoots(former, identity) ? 'same' : 'other')
  agent.record.count({ kind: 'recovered' })
  agent.record.success('recovery', `Recovered as ${identity.nodeId}, epoch ${identity.epoch}.`)
  agent.record.clear('enrollment')
  agent.log.info(
    { node: identity.nodeId, epoch: identity.epoch, persisted: kept.persisted, correlation: story.correlation },
    'recovered',
  )
  if (way.credential.kind !== 'repair') return { kind: 'identity' }
  // Without a durable certificate the bundle is still needed after a crash: the repeated request gets the same answer with
  // it. This process has what it wanted of it.
  if (kept.persisted) dropBundle(agent, way)
  else agent.bundles.spent(way.credential.bundle)
  return { kind: 'identity' }
}

const sameRoots = (former: Identity, { roots }: Identity): boolean =>
  former.roots.length === roots.length && roots.every((root) => former.roots.includes(root))

const abandon = (agent: RecoveryAgent): Provided => {
  const { keeper, record, log } = agent
  agent.episode.begunAnew('kept')
  if (keeper.credentials().request?.purpose.kind === 'recover') keeper.keep(withRequest(keeper.credentials(), null))
  record.success('recovery', 'The identity there is turned out to be good.')
  record.clear('enrollment')
  log.info('no recovery is needed: the existing identity still works')
  return { kind: 'identity' }
}

const withoutWaiting = (
  agent: RecoveryAgent,
  next: Exclude<NextTry, { kind: 'wait' }>,
  failure: Exclude<PlaneFailure, { kind: 'stopped' }>,
): Provided => {
  agent.record.trouble('recovery', failure.trouble, null)
  if (next.kind === 'elsewhere') return { kind: 'not-mine' }
  // An unused token: an operator made it for a machine that was shut out.
  const invited = agent.config.joinMethod === 'token' && isInvited(agent)
  return invited ? { kind: 'not-mine' } : { kind: 'failed', outcome: next.outcome }
}

const tell = (
  agent: RecoveryAgent,
  { trouble }: Exclude<PlaneFailure, { kind: 'stopped' }>,
  { waitMs, intent }: Extract<NextTry, { kind: 'wait' }>,
  { correlation }: Story,
): void => {
  const nextTryAtMs = agent.clock.nowMs() + waitMs
  agent.record.trouble('recovery', trouble, nextTryAtMs, correlation)
  agent.log.warn(
    { code: trouble.code, class: trouble.class, next: trouble.next, nextTry: isoTime(nextTryAtMs), correlation },
    `${trouble.text} ${intent}`.trim(),
  )
}

/** Removes the bundle and clears `repair_requested`: from then on the recovery reports its own failures. */
const withoutBundle = (agent: RecoveryAgent, way: WayBack): void => {
  dropBundle(agent, way)
  agent.record.clear('enrollment')
}

const dropBundle = ({ bundles, log }: RecoveryAgent, { credential }: WayBack): void => {
  if (credential.kind === 'repair') bundles.spent(credential.bundle)
  const undeleted = bundles.drop()
  if (undeleted !== null) log.warn({ why: undeleted }, 'the used repair bundle could not be deleted')
}
