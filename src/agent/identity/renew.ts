// One renewal: a new key and request, durable before they are sent; the answer checked, kept, and in force.

import { markedWord } from '#domain/core/plane-mark.ts'
import { afterRefusal } from '#agent/link/after-refusal.ts'
import { withSignal, type AgentParts } from '#agent/core/agent-parts.ts'
import { keptIssuerRoots } from '#agent/state/identity-keeper.ts'
import { keyChoice, keyTypeFor, newKeyRequest, newRecoveryKey } from '#agent/state/key-request.ts'
import { callPlane, type CallingAgent } from '#agent/link/plane-client.ts'
import { noAnswer, unusableAnswer, type PlaneFailure } from '#agent/link/plane-failure.ts'
import { identityApi, type RenewRequest, type RecoveryRegistration } from '#wire/identity/identity-api.ts'
import {
  faultOfEndpoints,
  faultOfRecoveryFields,
  faultOfNewRoots,
  faultOfProfile,
  generationFrom,
  issuerRootsFrom,
  recoveryFrom,
} from '#agent/state/certificate-answer.ts'
import { heldAfter, lacksRecovery, lateRegistration } from './late-registration.ts'
import {
  mergeWithdrawn,
  renewedTo,
  requestFor,
  withKeyTypes,
  withRequest,
  type Identity,
  type KeyRequest,
} from '#agent/state/credentials.ts'

export type RenewingAgent = CallingAgent &
  Pick<AgentParts, 'reached' | 'storage' | 'marks' | 'rotation' | 'bearerTurns'>

export type Renewed = {
  readonly kind: 'renewed'
  readonly serial: string
  readonly persisted: boolean
  /** Its answer says that nothing is registered to recover with: another renewal registers that. */
  readonly lacksRecovery: boolean
  /** Its request brought a recovery key to register. */
  readonly broughtKey: boolean
}

/** A server that accepts the connection and does not answer must not use up the rest of the certificate's lifetime. */
export const renewWithin = async (
  agent: RenewingAgent,
  identity: Identity,
  withinMs: number,
): Promise<Renewed | PlaneFailure> => {
  const late = new AbortController()
  const cancel = agent.timers.after(Math.min(withinMs, longestPatienceMs), () => late.abort(), 'background')
  agent.record.count({ kind: 'renewal-tried' })
  const signal = AbortSignal.any([agent.signal, late.signal])
  const outcome = await agent.bearerTurns.renew(() => renewOnce(withSignal(agent, signal), identity)).finally(cancel)
  if (outcome.kind !== 'stopped' || agent.signal.aborted) return outcome
  const url = identity.endpoints.runtime[0] ?? identity.origin.url
  const seen = { kind: 'no-answer', code: 'ETIMEDOUT', url, address: null, lastGoodTried: 0 } as const
  return noAnswer(url, 'no answer in the time that is left for it', seen)
}

const longestPatienceMs = 120_000

const renewOnce = async (agent: RenewingAgent, identity: Identity): Promise<Renewed | PlaneFailure> => {
  const request = openRequest(agent, identity)
  if (request.kind !== 'request') return request
  // Where time is short nothing may come before the renewal itself.
  const hurried = isLastQuarter(identity, agent.clock.nowMs())
  const registration = hurried ? null : await lateRegistration(agent, identity, request.request)
  const answer = await callPlane(agent, identity, {
    endpoint: identityApi.renew,
    json: renewBody(agent, identity, request.request, registration),
  })
  if (answer.kind !== 'answer') {
    // A key that is of no use for a recovery is of none for a renewal either.
    if (answer.kind === 'refused' && afterRefusal[answer.retry].recover === 'new-key') forget(agent, answer.keyTypes)
    return answer
  }
  agent.reached('renew: answered')
  const { roots, profile, endpoints } = answer.value
  const fault =
    faultOfNewRoots(identity.roots, roots) ??
    faultOfProfile(profile) ??
    faultOfEndpoints(endpoints) ??
    faultOfRecoveryFields(answer.value, identity)
  if (fault !== null) return unusableAnswer(fault)
  const made = generationFrom(request.request, answer.value)
  if (made.kind === 'unusable') return unusableAnswer(made.why)
  // Read again: a trust update may have arrived while we waited.
  const latest = agent.keeper.credentials().identity ?? identity
  // A better source has taken over meanwhile: what we asked for is not needed.
  if (latest.source !== identity.source) {
    return { kind: 'renewed', serial: latest.current.serial, persisted: true, lacksRecovery: false, broughtKey: false }
  }
  const held = heldAfter(latest.recovery, request.request, answer.value)
  const renewal = {
    profile,
    endpoints,
    roots,
    withdrawnIssuers: mergeWithdrawn(latest.withdrawnIssuers, answer.value.withdrawn_issuers),
    issuerRoots: issuerRootsFrom(answer.value.issuer_roots, latest.issuerRoots),
    understands: answer.value.understands ?? latest.understands,
    marked: latest.marked || answer.value.understands?.includes(markedWord) === true,
    counter: answer.value.counter ?? null,
    recovery: recoveryFrom(answer.value, held, latest.recovery),
    clockToleranceMs: answer.value.clock_tolerance_ms ?? latest.clockToleranceMs,
  }
  const kept = agent.keeper.keep(renewedTo(latest, made.generation, renewal))
  const rotated = request.request.recoveryKey
  if (rotated !== null && held.kind === 'key' && held.keyPem === rotated.keyPem)
    agent.rotation.settle(rotated, { kind: 'rotated', serial: made.generation.serial })
  agent.marks.learn({ ...latest, ...renewal })
  agent.reached('renew: identity kept')
  return {
    kind: 'renewed',
    serial: made.generation.serial,
    persisted: kept.persisted,
    broughtKey: request.request.recoveryKey !== null,
    // Renews early only once: a registration that failed although it was known to be missing waits for the next renewal.
    lacksRecovery: !lacksRecovery(agent, identity) && lacksRecovery(agent, { ...latest, ...renewal }),
  }
}

/** The counter shows that no copy of us has been here before; an older plane would not know what to make of it. */
const renewBody = (
  { keeper }: Pick<RenewingAgent, 'keeper'>,
  { counter, understands }: Identity,
  request: KeyRequest,
  recovery: RecoveryRegistration | null,
): RenewRequest => ({
  csr: request.csrPem,
  ...(counter !== null && understands.includes('counter') ? { counter } : {}),
  ...(recovery === null ? {} : { recovery }),
  ...(understands.includes('issuer_roots') ? { issuer_roots: keptIssuerRoots(keeper) } : {}),
})

const openRequest = (
  agent: RenewingAgent,
  identity: Identity,
): { kind: 'request'; request: KeyRequest } | PlaneFailure => {
  const { keeper, config, clock } = agent
  const purpose = { kind: 'renew', serial: identity.current.serial } as const
  const keyType = keyTypeFor(config.keyType, identity.profile.key_types)
  const open = requestFor(keeper.credentials(), purpose, keyType)
  if (open !== null) return { kind: 'request', request: open }
  const recoveryKey =
    config.recovery === 'key' && lacksRecovery(agent, identity) ? newRecoveryKey() : agent.rotation.wanted()
  const request = newKeyRequest(purpose, keyChoice(keyType, null), identity.nodeId, clock.nowMs(), recoveryKey)
  const kept = keeper.keepFirst(withRequest(keeper.credentials(), request))
  if (kept.persisted) {
    agent.reached('renew: request kept')
    return { kind: 'request', request }
  }
  if (isLastQuarter(identity, clock.nowMs())) {
    // An identity that a crash may lose is better than one that is sure to expire.
    keeper.keep(withRequest(keeper.credentials(), request))
    return { kind: 'request', request }
  }
  return { kind: 'unreachable', trouble: agent.storage.notKept(kept, 'The renewal waits') }
}

const isLastQuarter = ({ current }: Identity, nowMs: number): boolean =>
  current.notAfterMs - nowMs < (current.notAfterMs - current.issuedAtMs) / 4

/** `keyTypes`: where the key was of another type, those of which one is made next. */
const forget = ({ keeper }: RenewingAgent, keyTypes: readonly string[]): void => {
  const credentials = keeper.credentials()
  keeper.keep(keyTypes.length > 0 ? withKeyTypes(credentials, keyTypes) : withRequest(credentials, null))
}
