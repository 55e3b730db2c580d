// The fire drill: on a schedule a healthy agent goes through its recovery with the plane, to the last check, and nothing
// changes. What does not work is known while there is time, and not when the certificate is gone.

import type { RehearsalStep } from '#domain/core/node.ts'
import { recoveryApi, type RehearseRequest } from '#wire/recovery/recovery-api.ts'
import { afterRefusal } from '#agent/link/after-refusal.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { askChallenge, callAnonymously, type AnonymousAgent } from '#agent/link/anonymous-call.ts'
import { agentEvidence } from '#agent/link/evidence.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { recoveryKeyDamage } from '#agent/state/sound-credentials.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { classified, trouble, type Trouble } from '#agent/core/trouble.ts'
import { nudgedPause } from '#agent/core/pause.ts'
import { ownWayBack, credentialOf } from './way-back.ts'

type RehearsingAgent = AnonymousAgent & Pick<AgentParts, 'episode' | 'nudge' | 'instance' | 'storage' | 'bearerTurns'>

const answerTimeoutMs = 30_000
const lookEveryMs = 1_000
const firstAfterMs = 3_000
/** What failed is tried again sooner than the schedule says. */
const againAfterMs = 900_000

/** Runs until it is stopped. The result of a rehearsal never changes the identity in use. */
export const keepRehearsed = async (agent: RehearsingAgent, identityNow: () => Identity): Promise<void> => {
  const { clock, episode, nudge, random, signal } = agent
  let dueAtMs: number | null = null
  let nudges = nudge.count()
  let failedForClock = false
  while (!signal.aborted) {
    await nudgedPause(agent, lookEveryMs)
    if (!episode.channelIsOpen() || signal.aborted) continue
    const intervalMs = everyMs(agent, identityNow())
    dueAtMs ??= clock.monotonicMs() + Math.min(intervalMs, firstAfterMs * random.unit())
    // The trouble with the clock would stay on record, here and at the plane, long after the clock has been set.
    const isSetRight = failedForClock && clock.offsetMs() === 0
    if (clock.monotonicMs() < dueAtMs && nudge.count() === nudges && !isSetRight) continue
    nudges = nudge.count()
    const outcome = await rehearseOnce(agent, identityNow())
    // An offset of 0 says nothing where the right time was never learned.
    failedForClock = outcome === 'clock' && clock.offsetMs() !== 0
    dueAtMs = clock.monotonicMs() + waitAfter(outcome, intervalMs) * (1 - random.unit() / 5)
  }
}

/** What is not there to rehearse may be with the next renewal, and looking costs nothing. */
const waitAfter = (outcome: Rehearsed, intervalMs: number): number => {
  if (outcome === 'nothing' || outcome === 'overtaken') return 0
  return outcome === 'passed' ? intervalMs : Math.min(intervalMs, againAfterMs)
}

const aDayMs = 86_400_000

/** A lower bound, whatever interval the plane asks for. */
const everyMs = ({ config }: RehearsingAgent, { profile }: Identity): number =>
  Math.max(lookEveryMs, config.rehearseEveryMs ?? profile.recovery?.rehearse_every_ms ?? aDayMs)

/**
 * `clock`: failed because this machine's is wrong. `nothing`: this node has no recovery to rehearse, or was stopped over it.
 * `overtaken`: a renewal replaced what was asked with while it was under way, so that its failure says nothing.
 */
type Rehearsed = 'passed' | 'failed' | 'clock' | 'nothing' | 'overtaken'

/** A challenge that was too old when it came back (a clock was set, a machine slept) says nothing about the recovery. */
const challengesAtOnce = 3

const rehearseOnce = async (agent: RehearsingAgent, identity: Identity, challenges = 1): Promise<Rehearsed> => {
  const damage = recoveryKeyDamage(identity)
  if (damage !== null) return tell(agent, 'proof', damage.code, damage)
  const way = ownWayBack(identity)
  if (way === null || way.counter === null) return 'nothing'
  const asked = await askChallenge(agent, way.target, way.node)
  if (asked.kind !== 'challenge') return failedAt(agent, stepOfFailedCall(asked), asked)
  // A bearer token that a renewal has replaced by now would be refused, and the journal would say so for good.
  if (isOvertaken(agent, identity)) return 'overtaken'
  const json: RehearseRequest = {
    node_id: way.node,
    credential: credentialOf(way, { node: way.node, challenge: asked.challenge, csrPem: null, counter: way.counter }),
    counter: way.counter,
    evidence: agentEvidence(agent, way.domain),
    disk_reserve: agent.storage.reserve(),
    clock_skew_ms: Math.round(agent.record.now().figures.clockSkewMs),
  }
  const call = { endpoint: recoveryApi.rehearse, json, timeoutMs: answerTimeoutMs }
  const send = () => callAnonymously(agent, way.target, call)
  const answer = await (way.credential.kind === 'bearer' ? agent.bearerTurns.rehearse(send) : send())
  if (answer === null) return 'overtaken'
  const passed = answer.kind === 'answer' && answer.value.outcome === 'passed'
  if (!passed && isOvertaken(agent, identity)) return 'overtaken'
  if (answer.kind === 'refused' && answer.retry === 'new-challenge' && challenges < challengesAtOnce) {
    return rehearseOnce(agent, identity, challenges + 1)
  }
  if (answer.kind !== 'answer') return failedAt(agent, stepOfRefusal(answer), answer)
  const { outcome, step, why } = answer.value
  if (outcome === 'failed') {
    return tell(agent, step ?? 'proof', why ?? 'unknown', notPassed(step ?? 'proof', why ?? 'unknown'))
  }
  agent.record.count({ kind: 'rehearsed', outcome, step: null, why: null })
  agent.record.success('rehearsal', 'The recovery rehearsal passed.')
  agent.log.info('recovery rehearsal passed')
  return 'passed'
}

const isOvertaken = ({ keeper }: RehearsingAgent, { current }: Identity): boolean =>
  keeper.credentials().identity?.current.serial !== current.serial

const failedAt = (
  agent: RehearsingAgent,
  step: RehearsalStep,
  failure: PlaneFailure,
): 'failed' | 'clock' | 'nothing' =>
  failure.kind === 'stopped' ? 'nothing' : tell(agent, step, failure.trouble.code, failure.trouble)

const tell = (agent: RehearsingAgent, step: RehearsalStep, why: string, what: Trouble): 'failed' | 'clock' => {
  agent.record.count({ kind: 'rehearsed', outcome: 'failed', step, why: why.slice(0, 64) })
  agent.record.trouble('rehearsal', what, null)
  agent.log.warn({ step, code: what.code, next: what.next }, `the recovery would not work: ${what.text}`)
  return step === 'clock' ? 'clock' : 'failed'
}

const notPassed = (step: RehearsalStep, why: string): Trouble =>
  classified(
    trouble(
      'recovery_would_fail',
      `The plane says that a recovery would fail at its ${step} (${why}).`,
      'See what it needs: muster node explain ID',
    ),
    step === 'disk' ? 'disk_full' : step === 'clock' ? 'clock_skew' : 'recovery_enrollment_blocked',
    { step, why },
  )

const stepOfFailedCall = (failure: PlaneFailure): RehearsalStep => {
  if (failure.kind !== 'untrusted') return 'endpoint'
  return failure.trouble.class === 'clock_skew' ? 'clock' : 'trust'
}

const stepOfRefusal = (failure: PlaneFailure): RehearsalStep =>
  failure.kind === 'refused' ? afterRefusal[failure.retry].rehearsal : stepOfFailedCall(failure)
