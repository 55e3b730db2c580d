// One enrollment request on a connection that has been verified, and the identity made of its answer.

import { sha256Hex } from '#platform/bytes.ts'
import { evidenceHeader, formatEvidence } from '#wire/api/agent-evidence.ts'
import { EnrollResponse, nodeIdShape, type EnrollRequest } from '#wire/api/node-api.ts'
import type { JoinString } from '#wire/core/join-string.ts'
import type { WireguardConfig } from '#wire/network/peers.ts'
import type { RecoveryRegistration } from '#wire/recovery/recovery-registration.ts'
import { fingerprint } from '#pki/certificate.ts'
import { fromPem } from '#pki/pem.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import { agentEvidence } from '#agent/link/evidence.ts'
import { hardwareReport, type HardwareReport } from '#agent/core/hardware-report.ts'
import {
  faultOfEndpoints,
  faultOfLineage,
  faultOfProfile,
  faultOfRoots,
  generationFrom,
  recoveryFrom,
} from '#agent/state/certificate-answer.ts'
import type { AgentRecovery, Identity, KeyRequest } from '#agent/state/credentials.ts'
import { unusableAnswer, type PlaneFailure } from '#agent/link/plane-failure.ts'
import { registrationOf } from '#agent/link/prove.ts'
import { trouble } from '#agent/core/trouble.ts'
import { withdrawnNow, withdrawnWith } from '#agent/link/withdrawn-issuers.ts'
import { faultOfWireguard } from '#agent/network/peer-fault.ts'
import { askChallenge, isUnknownAddress, knock, type Door } from '#agent/link/knock.ts'

export type Enrolled = {
  readonly kind: 'enrolled'
  readonly identity: Identity
  readonly serverTime: string
  /** Null: no part in the WireGuard network. */
  readonly wireguard: WireguardConfig | null
}

/** Longer than most: under `probe` the plane pings the old holder before it answers. */
const answerTimeoutMs = 60_000

export const enrollCall = async (
  agent: AgentParts,
  join: JoinString,
  request: KeyRequest,
): Promise<Enrolled | PlaneFailure> => {
  const hardware = hardwareReport(agent.config.hardwareFile)
  if (hardware === null) return noHardwareFile(agent.config.hardwareFile)
  const door = doorOf(agent, join)
  const registration = await registrationFor(agent, door, request)
  if (registration.kind !== 'registration') return registration
  const wireguard = agent.wireguard.request()
  if (!('kind' in wireguard)) {
    return { kind: 'unreachable', trouble: agent.storage.notKept(wireguard, 'Nothing was sent') }
  }
  const json = enrollBody(agent.config, join, request, hardware, registration.body)
  const ask = (body: object): ReturnType<typeof knock<typeof EnrollResponse>> =>
    knock(agent, door, {
      ...({ path: '/v1/enroll', json: body, answer: EnrollResponse, timeoutMs: answerTimeoutMs } as const),
      // Tells a machine that comes back from another one that shows its hardware. A plane that knows no such header skips it.
      headers: { [evidenceHeader]: formatEvidence(agentEvidence(agent, join.domain)) },
    })
  const withKey = wireguard.body === null ? json : { ...json, wireguard: wireguard.body }
  let answer = await ask(withKey)
  if (withKey !== json && isUnknownField(answer, 'wireguard')) {
    agent.log.warn('this plane knows no WireGuard; enrolling without it')
    answer = await ask(json)
  }
  if (answer.kind !== 'answer') return answer
  agent.reached('enroll: answered')
  return identityFrom(join, request, answer.value, withdrawnNow(agent))
}

/** At first only the root is known, by its fingerprint; a machine that was enrolled before has keys for statements too. */
const doorOf = ({ keeper }: AgentParts, join: JoinString): Door => {
  const { identity } = keeper.credentials()
  const statementKeys = identity?.domain === join.domain ? (identity.recovery?.trust.statement_keys ?? []) : []
  return {
    urls: [join.url],
    trust: { kind: 'fingerprint', rootFingerprint: join.rootFingerprint },
    purpose: 'runtime',
    pinned: statementKeys.length === 0 ? null : { domain: join.domain, statementKeys },
  }
}

type Registration = { readonly kind: 'registration'; readonly body: RecoveryRegistration | null }

/** The plane is asked for a challenge even where no key signs it: one that does not know the address knows no recovery. */
const registrationFor = async (
  agent: AgentParts,
  door: Door,
  request: KeyRequest,
): Promise<Registration | PlaneFailure> => {
  const { recovery } = agent.config
  if (recovery === 'none') return { kind: 'registration', body: null }
  // Whose statements these are cannot be known before the answer, and need not be: it only has to come back.
  const asked = await askChallenge(agent, { ...door, pinned: null }, null)
  if (asked.kind !== 'challenge') return isUnknownAddress(asked) ? { kind: 'registration', body: null } : asked
  if (recovery === 'bearer') return { kind: 'registration', body: { kind: 'bearer' } }
  if (request.recoveryKey === null) return { kind: 'registration', body: null }
  const about = { node: null, challenge: asked.challenge, csrPem: request.csrPem }
  return { kind: 'registration', body: registrationOf(request.recoveryKey, about) }
}

/**
 * An older plane refuses what it does not know, before it looks at the token. What is only wrong is for a person to put
 * right. Planes before 0.3.0 name no field, and each of them since 0.2.0 knows all fields of an enrollment.
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

const identityFrom = (
  join: JoinString,
  request: KeyRequest,
  answer: EnrollResponse,
  withdrawn: readonly string[],
): Enrolled | PlaneFailure => {
  const fault =
    faultOfRoots(answer.roots) ??
    faultOfProfile(answer.profile) ??
    faultOfEndpoints(answer.endpoints) ??
    faultOfMembership(join, answer) ??
    faultOfWireguard(wireguardIn(answer)) ??
    faultOfLineage(answer, { domain: answer.domain, nodeId: answer.node_id })
  if (fault !== null) return unusableAnswer(fault)
  const made = generationFrom(request, answer.certificate_chain)
  if (made.kind === 'unusable') return unusableAnswer(made.why)
  const identity: Identity = {
    source: 'plane',
    nodeId: answer.node_id,
    domain: answer.domain,
    epoch: answer.epoch,
    profile: answer.profile,
    endpoints: answer.endpoints,
    roots: answer.roots,
    withdrawnIssuers: withdrawnWith(withdrawn, answer.withdrawn_issuers),
    trustRevision: 0,
    graceMs: answer.liveness_grace_ms,
    understands: answer.understands,
    origin: {
      url: join.url,
      rootFingerprint: join.rootFingerprint,
      usedSecretHash: join.secret === null ? null : sha256Hex(join.secret),
    },
    current: made.generation,
    counter: answer.counter ?? null,
    recovery: recoveryFrom(answer, registeredKey(request), null),
    clockToleranceMs: answer.clock_tolerance_ms ?? 300_000,
    previous: null,
  }
  return { kind: 'enrolled', identity, serverTime: answer.server_time, wireguard: wireguardIn(answer) }
}

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
  // What is taken has to be what the credential store reads again at the next start.
  if (answer.epoch < 0 || answer.liveness_grace_ms < 0) return 'an epoch or a grace below zero'
  const known = answer.roots.some((pem) => {
    const der = fromPem('CERTIFICATE', pem)
    return der !== null && fingerprint(der) === join.rootFingerprint
  })
  return known ? null : 'the root of the join string is not among its roots'
}
