// Asking the plane for an identity, by enrollment or recovery: one request on a connection that has been verified, and the
// identity made of its answer, checked.

import { markedWord } from '#domain/core/plane-mark.ts'
import type { Immutable } from '#wire/core/endpoint.ts'
import { enrollApi, type EnrollRequest, type EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import { recoveryApi, type RecoverRequest } from '#wire/recovery/recovery-api.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import {
  faultOfEndpoints,
  faultOfProfile,
  faultOfRoots,
  generationFrom,
  issuerRootsFrom,
} from '#agent/state/certificate-answer.ts'
import { mergeWithdrawn, noIssuerRoots, type Identity, type KeyRequest } from '#agent/state/credentials.ts'
import { callAnonymously, type CallTarget, type AnonymousAgent } from './anonymous-call.ts'
import type { Asked } from './next-try.ts'
import { unusableAnswer, type PlaneFailure } from './plane-failure.ts'

export type AskingAgent = AnonymousAgent & Pick<AgentParts, 'reached' | 'marks'>

export type IdentityCall = {
  readonly asked: Asked
  readonly target: CallTarget
  readonly request: KeyRequest
  readonly json: Immutable<EnrollRequest | RecoverRequest>
  readonly headers?: Readonly<Record<string, string>>
  /** A fault of the answer to this call in particular; null: the answer is for this node. */
  readonly faultOf: (answer: EnrollResponse) => string | null
  readonly origin: (answer: EnrollResponse) => Identity['origin']
  readonly recovery: (answer: EnrollResponse) => Identity['recovery']
}

export type GivenIdentity = {
  readonly kind: 'given'
  readonly identity: Identity
  readonly answer: EnrollResponse
}

/** Longer than most: a holder of the same identity may be pinged before the answer. */
const answerTimeoutMs = 60_000
const usualToleranceMs = 300_000

export const askIdentity = async (agent: AskingAgent, call: IdentityCall): Promise<GivenIdentity | PlaneFailure> => {
  const { asked, target, request, json, headers = {} } = call
  const endpoint = asked === 'enroll' ? enrollApi.enroll : recoveryApi.recover
  const answered = await callAnonymously(agent, target, { endpoint, json, headers, timeoutMs: answerTimeoutMs })
  if (answered.kind !== 'answer') return answered
  agent.reached(`${asked}: answered`)
  const answer = answered.value
  const facts = { at: target.purpose, certificate: null }
  const fault =
    faultOfRoots(answer.roots) ??
    faultOfProfile(answer.profile) ??
    faultOfEndpoints(answer.endpoints) ??
    call.faultOf(answer) ??
    // The agent accepts only an answer that the credential store can read again at the next start.
    (answer.epoch < 0 || answer.liveness_grace_ms < 0 ? 'an epoch or a grace below zero' : null)
  if (fault !== null) return unusableAnswer(fault, facts)
  const made = generationFrom(request, answer)
  if (made.kind === 'unusable') return unusableAnswer(made.why, facts)
  const identity: Identity = {
    source: 'plane',
    nodeId: answer.node_id,
    domain: answer.domain,
    epoch: answer.epoch,
    profile: answer.profile,
    endpoints: answer.endpoints,
    roots: answer.roots,
    withdrawnIssuers: mergeWithdrawn(
      agent.keeper.credentials().identity?.withdrawnIssuers ?? [],
      answer.withdrawn_issuers,
    ),
    trustRevision: 0,
    issuerRoots: issuerRootsFrom(answer.issuer_roots, noIssuerRoots),
    graceMs: answer.liveness_grace_ms,
    understands: answer.understands,
    marked: target.plane.marked || answer.understands.includes(markedWord),
    origin: call.origin(answer),
    current: made.generation,
    counter: answer.counter ?? null,
    recovery: call.recovery(answer),
    clockToleranceMs: answer.clock_tolerance_ms ?? usualToleranceMs,
    previous: null,
  }
  agent.marks.learn(identity)
  return { kind: 'given', identity, answer }
}
