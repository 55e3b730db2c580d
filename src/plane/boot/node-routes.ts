// What nodes may ask of the plane. Enrollment, what precedes it, and the bundle are the only routes without a
// client certificate; claims are signed by the domain that makes them.

import { Type, type Static } from 'typebox'
import { boundedText } from '#domain/core/decision.ts'
import { noHardware, type HardwareIdentity } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse } from '#domain/core/refusal.ts'
import { isoTime, type Clock } from '#platform/clock.ts'
import { confirmNode } from '#plane/identity/confirm-node.ts'
import { enrollNode, type EnrollDeps } from '#plane/enrollment/enroll-node.ts'
import { receiveClaims } from '#plane/federation/take-claims.ts'
import { renewCertificate, type RenewDeps } from '#plane/identity/renew-certificate.ts'
import { ClaimsAnswer, ClaimsRequest } from '#wire/federation/claim-api.ts'
import {
  BundleResponse,
  ConfirmRequest,
  ConfirmResponse,
  EnrollRequest,
  EnrollResponse,
  NodeIdText,
  RenewRequest,
  RenewResponse,
} from '#wire/api/node-api.ts'
import { challengeRoute, type ChallengeRouteDeps } from '#plane/identity/challenge-route.ts'
import { enrollmentAnswer, renewalAnswer, type IdentityAnswerDeps } from '#plane/enrollment/identity-answer.ts'
import { answer, type Call, type Route } from '#plane/http/route.ts'

export type NodeRouteDeps = EnrollDeps & RenewDeps & IdentityAnswerDeps & ChallengeRouteDeps

const Id = Type.Object({ id: NodeIdText }, { additionalProperties: false })

export const nodeRoutes = (deps: NodeRouteDeps): readonly Route[] => [
  {
    method: 'POST',
    path: '/v1/enroll',
    access: 'anyone',
    summary: 'Proves an invitation or a hardware identity, and gets a certificate',
    body: EnrollRequest,
    answer: EnrollResponse,
    handle: (call) => enroll(deps, call),
  },
  challengeRoute(deps),
  {
    method: 'POST',
    path: '/v1/nodes/:id/confirm',
    access: 'node-itself',
    inQuarantine: true,
    summary: 'Says that the certificate works, and whether it could be kept',
    params: Id,
    body: ConfirmRequest,
    answer: ConfirmResponse,
    handle: async (call) => {
      const { persisted = true, detail = null } = call.body as Static<typeof ConfirmRequest>
      const { evidence, correlation } = call
      const confirmation = { persisted, detail }
      const outcome = await confirmNode(deps, self(call), { confirmation, evidence, correlation })
      if (outcome.kind === 'refused') return outcome
      const { id, membership } = outcome.node
      return answer({ node_id: id, membership: membership.kind, server_time: timeNow(deps.clock) })
    },
  },
  {
    method: 'POST',
    path: '/v1/nodes/:id/renew',
    access: 'node-itself',
    summary: 'Gets the next certificate, for a new key',
    params: Id,
    body: RenewRequest,
    answer: RenewResponse,
    handle: async (call) => {
      const { csr, counter = null, recovery = null } = call.body as RenewRequest
      const { evidence, correlation } = call
      const outcome = await renewCertificate(deps, self(call), { csr, counter, recovery, evidence, correlation })
      return outcome.kind === 'refused' ? outcome : answer(renewalAnswer(deps, outcome))
    },
  },
  {
    method: 'GET',
    path: '/v1/nodes/:id/channel',
    access: 'node-itself',
    inQuarantine: true,
    kind: 'upgrade',
    summary: 'Becomes the channel: a WebSocket with the subprotocol muster.v1',
    params: Id,
    // Reached only without `Upgrade: websocket`; the listener takes upgrades over before this.
    handle: async () => refuse('REQUEST_INVALID', 'this address is a WebSocket: send Upgrade: websocket'),
  },
  {
    method: 'POST',
    path: '/v1/claims',
    access: 'anyone',
    summary: 'What another domain has signed of machines that may be in both registries; answers what is here',
    body: ClaimsRequest,
    answer: ClaimsAnswer,
    handle: async (call) => {
      const { statement } = call.body as Static<typeof ClaimsRequest>
      const outcome = await receiveClaims(deps, statement, call.principal.source, call.correlation)
      return isRefusal(outcome) ? outcome : answer(outcome)
    },
  },
  {
    method: 'GET',
    path: '/v1/bundle',
    access: 'anyone',
    summary: 'The roots of this domain',
    answer: BundleResponse,
    handle: async () =>
      answer({
        domain: deps.domainName,
        roots: deps.issuer.roots(),
        root_fingerprint: deps.issuer.rootFingerprint(),
        server_time: timeNow(deps.clock),
      }),
  },
]

const enroll = async (deps: NodeRouteDeps, call: Call) => {
  const body = call.body as EnrollRequest
  const { hardware_facts: facts } = body
  const outcome = await enrollNode(deps, {
    method: body.method,
    secret: body.enrollment_token ?? null,
    askedId: body.node_id ?? null,
    hardware: hardwareIn(body),
    facts:
      facts === undefined
        ? null
        : {
            cpuCores: facts.cpu_cores,
            memoryBytes: facts.memory_bytes,
            diskBytes: facts.disk_bytes,
            arch: boundedText(facts.arch, 32),
          },
    csr: body.csr,
    recovery: body.recovery ?? null,
    wireguard: body.wireguard ?? null,
    evidence: call.evidence,
    source: call.principal.source,
    correlation: call.correlation,
  })
  return outcome.kind === 'refused' ? outcome : answer(enrollmentAnswer(deps, outcome))
}

const hardwareIn = ({ hardware_identity: reported }: EnrollRequest): HardwareIdentity =>
  reported === undefined ? noHardware : { macs: [...new Set(reported.macs)].sort(), bmcSerial: reported.bmc_serial }

const timeNow = (clock: Clock): string => isoTime(clock.nowMs())

/** The access of these routes lets nobody but a node through. */
const self = (call: Call): NodePrincipal => {
  if (call.principal.kind !== 'node') throw new Error('a route for nodes was reached by somebody else')
  return call.principal
}
