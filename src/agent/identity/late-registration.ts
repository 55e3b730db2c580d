// A machine with nothing to recover with registers it with its next renewal: its agent or its plane knew no recovery when
// it enrolled, or the plane has dropped what a copy held too. One that has a recovery key replaces it so, where a task asks for that.

import type { RecoveryRegistration, RenewResponse } from '#wire/identity/identity-api.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import { askChallenge, type AnonymousAgent } from '#agent/link/anonymous-call.ts'
import { recoveryKeyId, registrationOf, replacementOf } from '#agent/link/prove.ts'
import { runtimeTarget } from '#agent/recovery/way-back.ts'
import type { AgentRecovery, Identity, KeyRequest } from '#agent/state/credentials.ts'

/** It could have something to recover with, and has not. */
export const lacksRecovery = (
  { config }: Pick<AgentParts, 'config'>,
  { recovery, profile, understands }: Identity,
): boolean =>
  config.recovery !== 'none' &&
  understands.includes('renewal_recovery') &&
  profile.recovery?.mode !== 'deny' &&
  (recovery === null || recovery.credential.kind === 'none')

/** Null: nothing is registered with this request. No challenge to be had is no reason not to renew. */
export const lateRegistration = async (
  agent: AnonymousAgent,
  identity: Identity,
  { recoveryKey, csrPem }: KeyRequest,
): Promise<RecoveryRegistration | null> => {
  const held = identity.recovery?.credential
  const replaced = held?.kind === 'key' && mayReplace(identity) ? held : null
  if (replaced === null && !lacksRecovery(agent, identity)) return null
  if (replaced === null && agent.config.recovery === 'bearer') return { kind: 'bearer' }
  if (recoveryKey === null) return null
  // The signer of the challenge need not be known, as at an enrollment: the plane only has to get it back.
  const asked = await askChallenge(agent, { ...runtimeTarget(identity), pinned: null }, identity.nodeId)
  if (asked.kind !== 'challenge') return null
  const about = { node: identity.nodeId, challenge: asked.challenge, csrPem }
  return replaced === null ? registrationOf(recoveryKey, about) : replacementOf(recoveryKey, replaced, about)
}

/** An earlier plane would refuse all of the renewal. */
export const mayReplace = ({ understands }: Pick<Identity, 'understands'>): boolean =>
  understands.includes('recovery_replaces')

/** A key that went with a request is registered only where the plane says so; a request that was repeated may have been. */
export const heldAfter = (
  former: AgentRecovery | null,
  { recoveryKey }: KeyRequest,
  answer: Pick<RenewResponse, 'recovery_registered' | 'recovery_key'>,
): AgentRecovery['credential'] => {
  const held = former === null ? { kind: 'none' as const } : former.credential
  if (recoveryKey === null || held.kind === 'bearer') return held
  const isTaken =
    held.kind === 'none' ? answer.recovery_registered === true : answer.recovery_key === recoveryKeyId(recoveryKey)
  return isTaken ? { kind: 'key', ...recoveryKey } : held
}
