// One enrollment request on a connection that has been verified, and the identity made of its answer.

import { sha256Hex } from '#platform/bytes.ts'
import { exchangeOn } from '#platform/http-exchange.ts'
import { EnrollResponse, nodeIdShape, type EnrollRequest } from '#wire/node-api.ts'
import type { JoinString } from '#wire/join-string.ts'
import { fingerprint } from '#pki/fingerprint.ts'
import { fromPem } from '#pki/pem.ts'
import type { AgentParts } from '../agent-deps.ts'
import type { AgentConfig } from '../config.ts'
import { faultOfEndpoints, faultOfProfile, faultOfRoots, generationFrom } from '../identity/certificate-answer.ts'
import type { Identity, KeyRequest } from '../identity/credentials.ts'
import { longestAnswer, parseAnswer } from '../plane-answers.ts'
import { under } from '../plane-client.ts'
import { failureFrom, unusableAnswer, type PlaneFailure } from '../plane-failure.ts'
import { hardwareReport, type HardwareReport } from '../hardware-report.ts'
import { trouble } from '../trouble.ts'
import { openVerifiedConnection } from './verified-connection.ts'

export type Enrolled = { readonly kind: 'enrolled'; readonly identity: Identity; readonly serverTime: string }

/** Longer than most: under `probe` the plane pings the old holder before it answers. */
const answerTimeoutMs = 60_000

export const enrollCall = async (
  agent: AgentParts,
  join: JoinString,
  request: KeyRequest,
): Promise<Enrolled | PlaneFailure> => {
  const hardware = hardwareReport(agent.config.hardwareFile)
  if (hardware === null) return noHardwareFile(agent.config.hardwareFile)
  const json = enrollBody(agent.config, join, request, hardware)
  const url = new URL(under(join.url, '/v1/enroll'))
  const opened = await openVerifiedConnection(agent, { url, rootFingerprint: join.rootFingerprint }, agent.signal)
  if (opened.kind !== 'verified') return opened
  try {
    const call = { method: 'POST' as const, path: url.pathname, authority: url.host, json, longestAnswer }
    const answer = await exchangeOn(agent.timers, opened.socket, { ...call, timeoutMs: answerTimeoutMs }, agent.signal)
    const parsed = parseAnswer(EnrollResponse, answer)
    return parsed.kind === 'answer' ? identityFrom(join, request, parsed.value) : parsed
  } catch (error) {
    return failureFrom(error, url.origin, agent.clock.nowMs())
  }
}

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
): EnrollRequest => ({
  ...hardware,
  ...(join.secret === null ? { method: 'hardware' } : { method: 'token', enrollment_token: join.secret }),
  ...(config.nodeId === null ? {} : { node_id: config.nodeId }),
  csr: request.csrPem,
})

const identityFrom = (join: JoinString, request: KeyRequest, answer: EnrollResponse): Enrolled | PlaneFailure => {
  const fault =
    faultOfRoots(answer.roots) ??
    faultOfProfile(answer.profile) ??
    faultOfEndpoints(answer.endpoints) ??
    faultOfMembership(join, answer)
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
    recovery: null,
    clockToleranceMs: answer.clock_tolerance_ms ?? 300_000,
    previous: null,
  }
  return { kind: 'enrolled', identity, serverTime: answer.server_time }
}

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
