// One recovery: a challenge, which also says what time it is; a key and a request, durable before they are sent; and the
// answer, checked, which is an identity in a new epoch with all its trust anew.

import type { FailureClass } from '#domain/recovery/failure-class.ts'
import { isoTime } from '#platform/clock.ts'
import { fingerprint } from '#pki/certificate.ts'
import { fromPem } from '#pki/pem.ts'
import type { EnrollResponse } from '#wire/api/node-api.ts'
import { RecoverResponse, type RecoverRequest } from '#wire/recovery/recovery-api.ts'
import type { RecoveryRegistration } from '#wire/recovery/recovery-registration.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import { askChallenge, knock } from '#agent/link/knock.ts'
import { agentEvidence } from '#agent/link/evidence.ts'
import {
  faultOfEndpoints,
  faultOfLineage,
  faultOfProfile,
  faultOfRoots,
  generationFrom,
  recoveryFrom,
} from '#agent/state/certificate-answer.ts'
import {
  requestFor,
  withRequest,
  type AgentRecovery,
  type Identity,
  type KeyRequest,
} from '#agent/state/credentials.ts'
import { keyTypeFor, newKeyRequest, newRecoveryKey } from '#agent/state/key-request.ts'
import { unusableAnswer, type PlaneFailure } from '#agent/link/plane-failure.ts'
import { classFor } from '#agent/diagnostics/report.ts'
import type { Story } from './episode.ts'
import { isNeedless } from './needless.ts'
import { withdrawnWith } from '#agent/link/withdrawn-issuers.ts'
import { keyCredential, registrationOf } from '#agent/link/prove.ts'
import type { WayBack } from './way-back.ts'

export type Recovered = { readonly kind: 'recovered'; readonly identity: Identity }
/** The identity there is turned out to be good. */
export type Needless = { readonly kind: 'needless' }

/** As long as an enrollment: a holder of the same identity may be pinged before the answer. */
const answerTimeoutMs = 60_000

export const recoverOnce = async (
  agent: AgentParts,
  way: WayBack,
  story: Story,
): Promise<Recovered | Needless | PlaneFailure> => {
  const asked = await askChallenge(agent, way.door, way.node)
  if (way.credential.kind !== 'repair') {
    const planeTimeMs = asked.kind === 'challenge' ? asked.timeMs : null
    if (await isNeedless(agent, story.trouble, planeTimeMs)) return { kind: 'needless' }
  }
  if (asked.kind !== 'challenge') return asked
  const request = openRequest(agent, way, story.correlation)
  const json = recoverBody(agent, way, request, asked.challenge, story)
  const answer = await knock(agent, way.door, {
    path: '/v1/recover',
    json,
    answer: RecoverResponse,
    timeoutMs: answerTimeoutMs,
  })
  if (answer.kind !== 'answer') return answer
  agent.reached('recover: answered')
  return identityFrom(agent, way, request, answer.value)
}

/** Kept even where the disk takes nothing: an identity that a crash may lose is better than none at all. */
const openRequest = (agent: AgentParts, way: WayBack, correlation: string): KeyRequest => {
  const { keeper, config, clock } = agent
  const { identity } = keeper.credentials()
  const purpose = { kind: 'recover', epoch: identity?.epoch ?? null, correlation } as const
  const keyType = keyTypeFor(config.keyType, identity?.profile.key_types ?? [config.keyType])
  // What was registered before may have been copied with the rest: a bundle comes with a new one.
  const recoveryKey = way.credential.kind === 'repair' && config.recovery === 'key' ? newRecoveryKey() : null
  const open = requestFor(keeper.credentials(), purpose, keyType)
  if (open !== null && (open.recoveryKey !== null || recoveryKey === null)) return open
  const request =
    open === null ? newKeyRequest(purpose, keyType, way.node, clock.nowMs(), recoveryKey) : { ...open, recoveryKey }
  const kept = keeper.keep(withRequest(keeper.credentials(), request))
  if (!kept.persisted) {
    agent.board.trouble('storage', agent.storage.notKept(kept, 'The request is only in memory'), null)
  }
  agent.reached('recover: request kept')
  return request
}

const recoverBody = (
  agent: AgentParts,
  way: WayBack,
  request: KeyRequest,
  challenge: string,
  { trouble, correlation, ...story }: Story,
): RecoverRequest => {
  const { node, counter } = way
  // Read again: the challenge has told the time.
  const { sinceMs } = agent.episode.current() ?? story
  const register = registrationWith(agent, way, request, challenge)
  const { identity } = agent.keeper.credentials()
  const current = identity?.current ?? null
  const sighting = identity?.understands.includes('sighting') === true ? agent.sightings.newest(way.domain) : null
  return {
    node_id: node,
    credential: credentialOf(way, { node, challenge, csrPem: request.csrPem, counter }),
    ...(counter === null ? {} : { counter }),
    csr: request.csrPem,
    failure: {
      class:
        identity === null ? knownToAll(trouble.class) : classFor(identity)(trouble.class ?? 'endpoint_unreachable'),
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

/** Without an identity nobody has said what the plane understands. */
const knownToAll = (name: FailureClass | null): FailureClass =>
  classFor({ understands: [] })(name ?? 'endpoint_unreachable')

/** `csrPem` null: at a rehearsal. */
export const credentialOf = (
  { credential }: WayBack,
  about: {
    readonly node: string
    readonly challenge: string
    readonly csrPem: string | null
    readonly counter: string | null
  },
): RecoverRequest['credential'] => {
  switch (credential.kind) {
    case 'key':
      return keyCredential(credential, about)
    case 'bearer':
      return { kind: 'bearer', token: credential.token }
    case 'repair':
      return { kind: 'repair', token: credential.bundle.recovery_token }
  }
}

const registrationWith = (
  { config }: AgentParts,
  { credential, node }: WayBack,
  { recoveryKey, csrPem }: KeyRequest,
  challenge: string,
): RecoveryRegistration | null => {
  if (credential.kind !== 'repair') return null
  if (recoveryKey !== null) return registrationOf(recoveryKey, { node, challenge, csrPem })
  return config.recovery === 'bearer' ? { kind: 'bearer' } : null
}

const identityFrom = (
  agent: AgentParts,
  way: WayBack,
  request: KeyRequest,
  answer: EnrollResponse,
): Recovered | PlaneFailure => {
  const former = agent.keeper.credentials().identity
  const facts = { at: 'recovery', certificate: null } as const
  const fault =
    faultOfRoots(answer.roots) ??
    faultOfProfile(answer.profile) ??
    faultOfEndpoints(answer.endpoints) ??
    faultOfLineage(answer, { domain: way.domain, nodeId: way.node }) ??
    faultOfSuccession(way, answer)
  if (fault !== null) return unusableAnswer(fault, facts)
  const made = generationFrom(request, answer.certificate_chain)
  if (made.kind === 'unusable') return unusableAnswer(made.why, facts)
  // The one in the request was registered only if a bundle took it there: one that was refused leaves it in the request.
  const recoveryKey = way.credential.kind === 'repair' ? request.recoveryKey : null
  const registered = recoveryKey === null ? former?.recovery?.credential : { kind: 'key' as const, ...recoveryKey }
  return {
    kind: 'recovered',
    identity: {
      source: 'plane',
      nodeId: answer.node_id,
      domain: answer.domain,
      epoch: answer.epoch,
      profile: answer.profile,
      endpoints: answer.endpoints,
      roots: answer.roots,
      withdrawnIssuers: withdrawnWith(former?.withdrawnIssuers ?? [], answer.withdrawn_issuers),
      trustRevision: 0,
      graceMs: answer.liveness_grace_ms,
      understands: answer.understands,
      origin: originOf(former, answer),
      counter: answer.counter ?? null,
      recovery: recoveryFrom(answer, registered ?? { kind: 'none' }, former?.recovery ?? trustOf(way)),
      clockToleranceMs: answer.clock_tolerance_ms ?? 300_000,
      current: made.generation,
      previous: null,
    },
  }
}

/** The epoch need not be a later one than ours: a plane that was restored from a backup counts on from there. */
const faultOfSuccession = (way: WayBack, answer: EnrollResponse): string | null => {
  if (answer.domain !== way.domain || answer.node_id !== way.node) return 'it is for another node'
  return answer.epoch < 0 || answer.liveness_grace_ms < 0 ? 'an epoch or a grace below zero' : null
}

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
