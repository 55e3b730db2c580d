// One recovery: a challenge, which also says what time it is; a key and a request, durable before they are sent; and the
// answer, which is an identity in a new epoch with all its trust anew.

import { isoTime } from '#platform/clock.ts'
import { fingerprint } from '#pki/certificate.ts'
import { fromPem } from '#pki/pem.ts'
import type { EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import type { RecoverRequest } from '#wire/recovery/recovery-api.ts'
import type { RecoveryRegistration } from '#wire/identity/identity-api.ts'
import { keptIssuerRoots } from '#agent/state/identity-keeper.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { Trouble } from '#agent/core/trouble.ts'
import { classFor } from '#agent/diagnostics/report.ts'
import { askIdentity, type AskingAgent, type GivenIdentity } from '#agent/link/ask-identity.ts'
import { agentEvidence } from '#agent/link/evidence.ts'
import { askChallenge } from '#agent/link/anonymous-call.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { registrationOf } from '#agent/link/prove.ts'
import { faultOfRecoveryFields, recoveryFrom } from '#agent/state/certificate-answer.ts'
import {
  requestFor,
  withRequest,
  type AgentRecovery,
  type Identity,
  type KeyRequest,
} from '#agent/state/credentials.ts'
import { keyChoice, keyTypeFor, newKeyRequest, newRecoveryKey } from '#agent/state/key-request.ts'
import type { Story } from './episode.ts'
import { credentialOf, runtimeTarget, type WayBack } from './way-back.ts'

export type RecoveringAgent = AskingAgent & Pick<AgentParts, 'storage' | 'episode' | 'sightings' | 'instance'>

/** The identity there is turned out to be good. */
export type Needless = { readonly kind: 'needless' }

/** `keyTypes`: those that the profile allows now, as far as the plane has said it with a refusal. */
export const recoverOnce = async (
  agent: RecoveringAgent,
  way: WayBack,
  story: Story,
  keyTypes: readonly string[] | null,
): Promise<GivenIdentity | Needless | PlaneFailure> => {
  const asked = await askChallenge(agent, way.target, way.node)
  if (way.credential.kind !== 'repair') {
    const planeTimeMs = asked.kind === 'challenge' ? asked.timeMs : null
    if (await isNeedless(agent, story.trouble, planeTimeMs)) return { kind: 'needless' }
  }
  if (asked.kind !== 'challenge') return asked
  const request = openRequest(agent, way, story.correlation, keyTypes)
  const former = (): Identity | null => agent.keeper.credentials().identity
  return askIdentity(agent, {
    ...({ asked: 'recover', target: way.target, request } as const),
    json: recoverBody(agent, way, request, asked.challenge, story),
    faultOf: (answer) =>
      faultOfRecoveryFields(answer, { domain: way.domain, nodeId: way.node }) ?? faultOfNode(way, answer),
    origin: (answer) => originOf(former(), answer),
    recovery: (answer) =>
      recoveryFrom(answer, registeredBy(way, request, former()), former()?.recovery ?? trustOf(way)),
  })
}

/**
 * Recovery costs an epoch and one of few tries. What looked like a dead identity may be a clock that was wrong, or a network
 * that answered for another plane for a while. `planeTimeMs`: what the recovery listener has just said; null: nothing.
 */
const isNeedless = async (agent: RecoveringAgent, why: Trouble, planeTimeMs: number | null): Promise<boolean> => {
  const { identity } = agent.keeper.credentials()
  if (identity === null) return false
  switch (why.class) {
    case 'cert_expired':
    case 'clock_skew': {
      // By the plane's clock and not by ours, which may differ from it as far as is tolerated.
      const timeMs = planeTimeMs ?? (await runtimeTime(agent, identity))
      return timeMs !== null && timeMs < identity.current.notAfterMs
    }
    case 'server_tls_untrusted':
    case 'endpoint_profile_drift':
      return (await askChallenge(agent, runtimeTarget(identity), null)).kind === 'challenge'
    default:
      return false
  }
}

const runtimeTime = async (agent: RecoveringAgent, identity: Identity): Promise<number | null> => {
  const asked = await askChallenge(agent, runtimeTarget(identity), null)
  return asked.kind === 'challenge' ? asked.timeMs : null
}

/** Kept even where the disk takes nothing: an identity that a crash may lose is better than none at all. */
const openRequest = (
  agent: RecoveringAgent,
  way: WayBack,
  correlation: string,
  keyTypes: readonly string[] | null,
): KeyRequest => {
  const { keeper, config, clock } = agent
  const { identity } = keeper.credentials()
  const purpose = { kind: 'recover', epoch: identity?.epoch ?? null, correlation } as const
  const keyType = keyTypeFor(config.keyType, identity?.profile.key_types ?? [config.keyType])
  // What was registered before may have been copied with the rest: a bundle comes with a new one.
  const recoveryKey = way.credential.kind === 'repair' && config.recovery === 'key' ? newRecoveryKey() : null
  const open = requestFor(keeper.credentials(), purpose, keyType)
  if (open !== null && (open.recoveryKey !== null || recoveryKey === null)) return open
  const choice = keyChoice(keyType, keyTypes)
  const request =
    open === null ? newKeyRequest(purpose, choice, way.node, clock.nowMs(), recoveryKey) : { ...open, recoveryKey }
  const kept = keeper.keep(withRequest(keeper.credentials(), request))
  if (!kept.persisted) {
    agent.record.trouble('storage', agent.storage.notKept(kept, 'The request is only in memory'), null)
  }
  agent.reached('recover: request kept')
  return request
}

const recoverBody = (
  agent: RecoveringAgent,
  way: WayBack,
  request: KeyRequest,
  challenge: string,
  { trouble, correlation, ...story }: Story,
): RecoverRequest => {
  const { node, counter } = way
  // Read again: the challenge may have corrected the clock.
  const { sinceMs } = agent.episode.current() ?? story
  const register = registrationWith(agent, way, request, challenge)
  const { identity } = agent.keeper.credentials()
  const current = identity?.current ?? null
  const failureClass = trouble.class ?? 'endpoint_unreachable'
  const sighting = identity?.understands.includes('sighting') === true ? agent.sightings.newest(way.domain) : null
  const saysRoots = identity?.understands.includes('issuer_roots') === true
  return {
    ...(saysRoots && { issuer_roots: keptIssuerRoots(agent.keeper) }),
    node_id: node,
    credential: credentialOf(way, { node, challenge, csrPem: request.csrPem, counter }),
    ...(counter === null ? {} : { counter }),
    csr: request.csrPem,
    failure: {
      class: identity === null ? failureClass : classFor(identity)(failureClass),
      code: trouble.code,
      // It may have begun by a clock that was wrong.
      since: isoTime(Math.min(sinceMs, agent.clock.nowMs())),
      cert_not_after: current === null ? null : isoTime(current.notAfterMs),
    },
    evidence: agentEvidence(agent, way.domain),
    ...(register === null ? {} : { register }),
    ...(sighting === null ? {} : { sighting }),
    correlation,
  }
}

const registrationWith = (
  { config }: RecoveringAgent,
  { credential, node }: WayBack,
  { recoveryKey, csrPem }: KeyRequest,
  challenge: string,
): RecoveryRegistration | null => {
  if (credential.kind !== 'repair') return null
  if (recoveryKey !== null) return registrationOf(recoveryKey, { node, challenge, csrPem })
  return config.recovery === 'bearer' ? { kind: 'bearer' } : null
}

/** The key in the request was registered only if a bundle took it there: one that was refused leaves it in the request. */
const registeredBy = (
  { credential }: WayBack,
  { recoveryKey }: KeyRequest,
  former: Identity | null,
): AgentRecovery['credential'] =>
  credential.kind === 'repair' && recoveryKey !== null
    ? { kind: 'key', ...recoveryKey }
    : (former?.recovery?.credential ?? { kind: 'none' })

/** The epoch need not be a later one than the last: a plane that was restored from a backup counts on from there. */
const faultOfNode = (way: WayBack, { domain, node_id: node }: EnrollResponse): string | null =>
  domain === way.domain && node === way.node ? null : 'it is for another node'

/** Where a machine joins by its hardware it is known by this root, which may have been replaced meanwhile. */
const originOf = (former: Identity | null, { roots, endpoints }: EnrollResponse): Identity['origin'] => {
  const fingerprints = roots.map((pem) => fingerprint(fromPem('CERTIFICATE', pem) ?? new Uint8Array()))
  const url = former?.origin.url ?? endpoints.runtime[0] ?? ''
  const known = fingerprints.find((each) => each === former?.origin.rootFingerprint)
  return { url, rootFingerprint: known ?? fingerprints[0] ?? '', usedSecretHash: former?.origin.usedSecretHash ?? null }
}

const trustOf = ({ credential }: WayBack): AgentRecovery | null =>
  credential.kind === 'repair'
    ? {
        trust: { roots: credential.bundle.recovery_roots, statement_keys: credential.bundle.statement_keys },
        credential: { kind: 'none' },
      }
    : null
