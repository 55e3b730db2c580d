// With no certificate the agent enrolls, and goes on trying for as long as trying can help.

import { sha256Hex } from '#platform/bytes.ts'
import { isoTime, parseIsoTime } from '#platform/clock.ts'
import { fingerprint } from '#pki/certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { evidenceHeader, formatEvidence } from '#wire/core/agent-evidence.ts'
import { nodeIdShape } from '#wire/core/shapes.ts'
import type { EnrollRequest, EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import type { JoinString } from '#wire/core/join-string.ts'
import type { WireguardConfig } from '#wire/network/peers.ts'
import type { IdentityProof, RecoveryRegistration } from '#wire/identity/identity-api.ts'
import type { AgentParts } from '#agent/core/agent-parts.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import { hardwareReport, type HardwareReport } from '#agent/core/hardware-report.ts'
import type { ClockReading } from '#agent/core/judged-clock.ts'
import { nudgedPause } from '#agent/core/pause.ts'
import { trouble } from '#agent/core/trouble.ts'
import { askIdentity, type AskingAgent, type GivenIdentity, type IdentityCall } from '#agent/link/ask-identity.ts'
import { agentEvidence } from '#agent/link/evidence.ts'
import { askChallenge, isUnknownAddress, type CallTarget } from '#agent/link/anonymous-call.ts'
import { learnTime } from '#agent/link/learn-time.ts'
import { nextTry } from '#agent/link/next-try.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import { identityProofOf, registrationOf } from '#agent/link/prove.ts'
import { faultOfWireguard } from '#agent/network/peer-fault.ts'
import { faultOfRecoveryFields, recoveryFrom } from '#agent/state/certificate-answer.ts'
import { enrolledAs, requestFor, withRequest, type AgentRecovery, type KeyRequest } from '#agent/state/credentials.ts'
import { keyChoice, newKeyRequest, newRecoveryKey } from '#agent/state/key-request.ts'
import { madeForAnother, madeForNow } from '#agent/state/made-for.ts'
import type { Provided } from '#agent/state/provider.ts'
import { provableKey } from '#agent/state/sound-credentials.ts'
import { dropUsedJoin } from './join-source.ts'

export type EnrollingAgent = AskingAgent &
  Pick<AgentParts, 'wireguard' | 'storage' | 'nudge' | 'instance' | 'lastConfig' | 'sightings' | 'episode'>

export const enroll = async (agent: EnrollingAgent, join: JoinString): Promise<Provided> => {
  let keyTypes: readonly string[] | null = null
  for (let attempt = 0; !agent.signal.aborted; attempt++) {
    const askedAt = agent.clock.reading()
    const tried = await tryOnce(agent, join, keyTypes)
    if (tried.kind === 'given') return accept(agent, tried, askedAt)
    if (tried.kind === 'stopped') break
    if (tried.kind === 'refused' && tried.code === 'WG_KEY_IN_USE') agent.wireguard.keyRefused()
    if (tried.kind === 'refused' && tried.keyTypes.length > 0) keyTypes = tried.keyTypes
    const next = nextTry('enroll', tried, attempt, agent.random.unit())
    if (next.kind === 'elsewhere') return { kind: 'not-mine' }
    if (next.kind === 'give-up') return { kind: 'failed', outcome: next.outcome }
    if (next.forget === 'key') agent.keeper.keep(withRequest(agent.keeper.credentials(), null))
    if (tried.kind === 'refused' && tried.retry === 'when-free') proveWithFormerKey(agent)
    const nextTryAtMs = agent.clock.nowMs() + next.waitMs
    agent.record.trouble('enrollment', tried.trouble, nextTryAtMs)
    agent.log.warn(
      { code: tried.trouble.code, next: tried.trouble.next, nextTry: isoTime(nextTryAtMs) },
      `${tried.trouble.text} ${next.intent}`.trim(),
    )
    await nudgedPause(agent, next.waitMs)
  }
  return { kind: 'failed', outcome: { kind: 'stopped' } }
}

/** `keyTypes`: those that the profile allows, as far as the plane has said it. */
const tryOnce = async (
  agent: EnrollingAgent,
  join: JoinString,
  keyTypes: readonly string[] | null,
): Promise<GivenIdentity | PlaneFailure> => {
  const { keeper, config, clock } = agent
  const purpose = { kind: 'enroll' } as const
  const open = requestFor(keeper.credentials(), purpose, config.keyType)
  const madeFor = madeForNow(config, join)
  const another = open === null ? null : madeForAnother(open.madeFor, madeFor)
  if (open !== null && another === null) return askToEnroll(agent, join, open)
  if (another !== null) dropCopied(agent, another)
  // A new one each time: a copy of the machine has the former key too.
  const recoveryKey = config.recovery === 'key' ? newRecoveryKey() : null
  const request = newKeyRequest(
    purpose,
    keyChoice(config.keyType, keyTypes),
    config.nodeId ?? 'muster-agent',
    clock.nowMs(),
    recoveryKey,
    madeFor,
  )
  // Durable before it is sent: after a crash this very request is repeated, and the token is not lost to another key.
  const kept = keeper.keepFirst(withRequest(keeper.credentials(), request))
  if (!kept.persisted) return { kind: 'unreachable', trouble: agent.storage.notKept(kept, 'Nothing was sent') }
  agent.reached('enroll: request kept')
  return askToEnroll(agent, join, request)
}

/** The request was kept on another machine, or for another join string: all clones of an image would have these keys. */
const dropCopied = ({ keeper, wireguard, log }: EnrollingAgent, changed: 'join string' | 'machine'): void => {
  log.warn({ changed }, `A request kept here was made for another ${changed}: its keys are dropped and new ones made.`)
  // An agent that had an identity before keeps the key that its peers know.
  if (keeper.credentials().identity === null) wireguard.keyRefused()
}

/** The node is active, perhaps as this very machine: its registered recovery key proves that (ruling 3). */
const proveWithFormerKey = ({ keeper }: EnrollingAgent): void => {
  const { identity, request } = keeper.credentials()
  const former = identity?.recovery?.credential
  if (request?.purpose.kind !== 'enroll' || request.recoveryKey === null || former?.kind !== 'key') return
  const { keyType, keyPem } = former
  keeper.keep(withRequest(keeper.credentials(), { ...request, recoveryKey: { keyType, keyPem } }))
}

const askToEnroll = async (
  agent: EnrollingAgent,
  join: JoinString,
  request: KeyRequest,
): Promise<GivenIdentity | PlaneFailure> => {
  const hardware = hardwareReport(agent.config.hardwareFile)
  if (hardware === null) return noHardwareFile(agent.config.hardwareFile)
  const target = callTargetOf(agent, join)
  const registration = await registrationFor(agent, target, request)
  if (registration.kind !== 'registration') return registration
  const wireguard = agent.wireguard.request()
  if (!('kind' in wireguard)) {
    return { kind: 'unreachable', trouble: agent.storage.notKept(wireguard, 'Nothing was sent') }
  }
  const proof = await proofFor(agent, target, join, request)
  if (proof.kind !== 'proof') return proof
  const json = enrollBody(agent.config, join, request, hardware, registration.body)
  const call: Omit<IdentityCall, 'json'> = {
    ...({ asked: 'enroll', target, request } as const),
    // Lets the plane distinguish a machine that returns from another one with its hardware addresses. An older plane ignores it.
    headers: { [evidenceHeader]: formatEvidence(agentEvidence(agent, join.domain)) },
    faultOf: (answer) =>
      faultOfMembership(join, answer) ??
      faultOfWireguard(wireguardIn(answer)) ??
      faultOfRecoveryFields(answer, { domain: answer.domain, nodeId: answer.node_id }),
    origin: () => ({
      url: join.url,
      rootFingerprint: join.rootFingerprint,
      usedSecretHash: join.secret === null ? null : sha256Hex(join.secret),
    }),
    recovery: (answer) => recoveryFrom(answer, registeredKey(request), null),
  }
  const extras: Extras = {
    ...(wireguard.body === null ? {} : { wireguard: wireguard.body }),
    ...(proof.body === null ? {} : { identity_proof: proof.body }),
  }
  return askWith(agent, call, json, extras)
}

type Extras = Pick<EnrollRequest, 'wireguard' | 'identity_proof'>

/** An older plane refuses the parts that it does not know, one at a time, and enrolls the machine without them. */
const askWith = async (
  agent: EnrollingAgent,
  call: Omit<IdentityCall, 'json'>,
  json: EnrollRequest,
  extras: Extras,
): Promise<GivenIdentity | PlaneFailure> => {
  const tried = await askIdentity(agent, { ...call, json: { ...json, ...extras } })
  if (extras.wireguard !== undefined && isUnknownField(tried, 'wireguard')) {
    agent.log.warn('this plane knows no WireGuard; enrolling without it')
    const { wireguard: _unknown, ...others } = extras
    return askWith(agent, call, json, others)
  }
  if (extras.identity_proof !== undefined && isUnknownField(tried, 'identity_proof')) {
    const { identity_proof: _unknown, ...others } = extras
    return askWith(agent, call, json, others)
  }
  return tried
}

type Proof = { readonly kind: 'proof'; readonly body: IdentityProof | null }

/**
 * The machine has the key of its certificate, and the certificate cannot be used: the plane may still take it for active. Proven at
 * the first attempt, since a refusal because of it would raise an alert about this very machine.
 */
const proofFor = async (
  agent: EnrollingAgent,
  target: CallTarget,
  join: JoinString,
  { csrPem }: KeyRequest,
): Promise<Proof | PlaneFailure> => {
  const { identity } = agent.keeper.credentials()
  const key = identity?.domain === join.domain ? provableKey(identity) : null
  if (identity === null || key === null) return { kind: 'proof', body: null }
  const asked = await askChallenge(agent, { ...target, pinned: null }, identity.nodeId)
  if (asked.kind !== 'challenge') return isUnknownAddress(asked) ? { kind: 'proof', body: null } : asked
  const about = { node: identity.nodeId, challenge: asked.challenge, csrPem, counter: key.counter }
  return { kind: 'proof', body: identityProofOf(key.keyPem, about) }
}

/** At first only the root is known, by its fingerprint; a machine that was enrolled before has keys for statements too. */
const callTargetOf = ({ keeper, marks }: EnrollingAgent, join: JoinString): CallTarget => {
  const { identity } = keeper.credentials()
  const statementKeys = identity?.domain === join.domain ? (identity.recovery?.trust.statement_keys ?? []) : []
  return {
    urls: [join.url],
    trust: { kind: 'fingerprint', rootFingerprint: join.rootFingerprint },
    plane: { domain: join.domain, marked: join.marked || marks.has(join.rootFingerprint) },
    purpose: 'runtime',
    pinned: statementKeys.length === 0 ? null : { domain: join.domain, statementKeys },
  }
}

type Registration = { readonly kind: 'registration'; readonly body: RecoveryRegistration | null }

/** The plane is asked for a challenge even where no key signs it: one that does not know the address knows no recovery. */
const registrationFor = async (
  agent: EnrollingAgent,
  target: CallTarget,
  request: KeyRequest,
): Promise<Registration | PlaneFailure> => {
  const { recovery } = agent.config
  if (recovery === 'none') return { kind: 'registration', body: null }
  // Whose statements these are cannot be known before the answer, and need not be: it only has to come back.
  const asked = await askChallenge(agent, { ...target, pinned: null }, null)
  if (asked.kind !== 'challenge') return isUnknownAddress(asked) ? { kind: 'registration', body: null } : asked
  if (recovery === 'bearer') return { kind: 'registration', body: { kind: 'bearer' } }
  if (request.recoveryKey === null) return { kind: 'registration', body: null }
  const about = { node: null, challenge: asked.challenge, csrPem: request.csrPem }
  return { kind: 'registration', body: registrationOf(request.recoveryKey, about) }
}

/**
 * An older plane refuses a field that it does not know before it looks at the token. A field with a wrong value is for an
 * operator to correct. Planes before 0.3.0 name no field, and each of them since 0.2.0 knows all fields of an enrollment.
 */
export const isUnknownField = (answer: { readonly kind: string } | PlaneFailure, field: string): boolean =>
  'unknownField' in answer && answer.unknownField === field

/** Asked again like a plane that is away: what makes the file may run after us. */
const noHardwareFile = (file: string | null): PlaneFailure => ({
  kind: 'unreachable',
  trouble: trouble(
    'hardware_file_unusable',
    `${file} is not there, cannot be read or is not a hardware file, so nothing was sent.`,
    `Make it, as root: muster agent read-hardware --out ${file}`,
  ),
})

const enrollBody = (
  config: AgentConfig,
  join: JoinString,
  request: KeyRequest,
  hardware: HardwareReport,
  recovery: RecoveryRegistration | null,
): EnrollRequest => ({
  ...hardware,
  ...(join.secret === null ? { method: 'hardware' } : { method: 'token', enrollment_token: join.secret }),
  ...(config.nodeId === null ? {} : { node_id: config.nodeId }),
  csr: request.csrPem,
  ...(recovery === null ? {} : { recovery }),
})

/** Its peers come over the channel, which is open as soon. */
const wireguardIn = ({ overlay_config: config = null }: EnrollResponse): WireguardConfig | null => {
  if (config === null) return null
  const { host_overlay_ipv6: address, network, listen_port, mtu } = config
  return { address, network, listen_port, mtu }
}

const registeredKey = ({ recoveryKey }: KeyRequest): AgentRecovery['credential'] =>
  recoveryKey === null ? { kind: 'none' } : { kind: 'key', ...recoveryKey }

const faultOfMembership = (join: JoinString, answer: EnrollResponse): string | null => {
  if (answer.domain !== join.domain) return 'it is of another domain than the join string'
  if (!new RegExp(nodeIdShape).test(answer.node_id)) return 'the name of the node is malformed'
  const known = answer.roots.some((pem) => {
    const der = fromPem('CERTIFICATE', pem)
    return der !== null && fingerprint(der) === join.rootFingerprint
  })
  return known ? null : 'the root of the join string is not among its roots'
}

const accept = (agent: EnrollingAgent, { identity, answer }: GivenIdentity, askedAt: ClockReading): Provided => {
  agent.lastConfig.forget()
  agent.sightings.enrolledUnder(identity.recovery?.trust.statement_keys ?? [])
  agent.wireguard.enrolled(wireguardIn(answer), identity.profile.key_storage === 'file')
  const kept = agent.keeper.keep(enrolledAs(identity))
  agent.reached('enroll: identity kept')
  agent.episode.begunAnew('other')
  agent.record.success('enrollment', `Enrolled as ${identity.nodeId}, epoch ${identity.epoch}.`)
  agent.log.info(
    { node: identity.nodeId, epoch: identity.epoch, serial: identity.current.serial, persisted: kept.persisted },
    'enrolled',
  )
  // Without a durable certificate the join string is still needed: the repeated request gets the same answer with it.
  if (kept.persisted) dropUsedJoin(agent, identity)
  const serverMs = parseIsoTime(answer.server_time)
  if (serverMs !== null) learnTime(agent, serverMs, askedAt)
  return { kind: 'identity' }
}
