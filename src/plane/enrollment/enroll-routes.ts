// How a machine that has no identity yet gets one; no client certificate is asked for.

import { boundedText } from '#domain/core/change.ts'
import { noHardware, type HardwareIdentity } from '#domain/core/node.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Clock } from '#platform/clock.ts'
import { answer, serve, type CallOf, type Route } from '#plane/http/route.ts'
import { identityAnswer, understoodBy, type AnswerParts, type Issued } from '#plane/identity/issue.ts'
import type { PeerBook } from '#plane/network/peer-book.ts'
import { overlayConfigOf, wireguardConfigOf } from '#plane/network/wireguard-part.ts'
import { enrollApi, type EnrollRequest, type EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import { enrollNode, type EnrollParts } from './enroll-node.ts'

export type EnrollRouteParts = EnrollParts & EnrollmentAnswerParts

export const enrollRoutes = (core: FlowCore, parts: EnrollRouteParts): readonly Route[] =>
  serve(enrollApi, { enroll: (call) => enroll(core, parts, call) })

const enroll = async (core: FlowCore, parts: EnrollRouteParts, call: CallOf<typeof enrollApi.enroll>) => {
  const { body } = call
  const { hardware_facts: facts } = body
  const outcome = await enrollNode(core, parts, {
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
    identityProof: body.identity_proof ?? null,
    wireguard: body.wireguard ?? null,
    evidence: call.evidence,
    source: call.principal.source,
    correlation: call.correlation,
  })
  return outcome.kind === 'refused' ? outcome : answer(enrollmentAnswer(core.clock, parts, outcome))
}

const hardwareIn = ({ hardware_identity: reported }: EnrollRequest): HardwareIdentity =>
  reported === undefined ? noHardware : { macs: [...new Set(reported.macs)].sort(), bmcSerial: reported.bmc_serial }

export type EnrollmentAnswerParts = AnswerParts & { readonly peerBook: Pick<PeerBook, 'peersFor'> }

/** What a machine is given that starts a new epoch: all of it. */
export const enrollmentAnswer = (clock: Clock, parts: EnrollmentAnswerParts, issued: Issued): EnrollResponse => {
  const { node, profile, domain } = issued
  const wireguard = wireguardConfigOf(node, profile, domain)
  return {
    node_id: node.id,
    domain: domain.name,
    epoch: node.epoch,
    vcluster: node.assignment,
    liveness_grace_ms: domain.livenessGraceMs,
    overlay_config: wireguard === null ? null : overlayConfigOf(wireguard, parts.peerBook.peersFor(node)),
    ...identityAnswer(clock, parts, issued),
    understands: understoodBy(parts.urls()),
  }
}
