// The calls of the recovery listener, which gives challenges too (wire/identity). The listener has its own root; no caller
// presents a client certificate there.

import { Type, type Static } from 'typebox'
import { rehearsalSteps, failureClasses } from '#domain/core/node.ts'
import { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeIdText, text } from '#wire/core/shapes.ts'
import { longestSighting, longestStatement } from '#wire/core/statement.ts'
import { EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import { IssuerRootsRevision, proof, RecoveryRegistration } from '#wire/identity/identity-api.ts'

const statement = text(longestStatement)
const correlationShape = '^[A-Za-z0-9-]{8,64}$'

export const bearerShape = /^recover_[A-Za-z0-9_-]{43}$/
export const repairTokenShape = /^repair_[A-Za-z0-9_-]{43}$/

const RecoveryCredentialBody = Type.Union([
  Type.Object({ kind: Type.Literal('key'), challenge: statement, proof }, closed),
  /** Checked for their shape by the flow, so that a bad one is refused like an unknown one. */
  Type.Object({ kind: Type.Literal('bearer'), token: text(256) }, closed),
  Type.Object({ kind: Type.Literal('repair'), token: text(256) }, closed),
])

/** What made the recovery necessary, as the agent classified it. */
const FailureBody = Type.Object(
  {
    class: Type.Enum([...failureClasses]),
    code: text(64),
    since: text(64),
    cert_not_after: Type.Union([text(64), Type.Null()]),
  },
  closed,
)

/** `POST /v1/recover` */
export const RecoverRequest = Type.Object(
  {
    node_id: NodeIdText,
    credential: RecoveryCredentialBody,
    /** Left out only by a machine that never got one, with a repair bundle. */
    counter: Type.Optional(statement),
    csr: text(16_384),
    failure: FailureBody,
    evidence: AgentEvidence,
    register: Type.Optional(RecoveryRegistration),
    /** The newest sighting the machine has kept: no channel opens over which it could show it. */
    sighting: Type.Optional(text(longestSighting)),
    /** As in a renewal. */
    issuer_roots: Type.Optional(IssuerRootsRevision),
    /** Made by the agent when the failure began; all entries of the story carry it. */
    correlation: Type.String({ pattern: correlationShape }),
  },
  closed,
)
export type RecoverRequest = Static<typeof RecoverRequest>

/** The same as an enrollment's: a new epoch, all trust material anew. */
export const RecoverResponse = EnrollResponse

/** `POST /v1/rehearse`: the whole ceremony, and nothing changes. */
export const RehearseRequest = Type.Object(
  {
    node_id: NodeIdText,
    credential: RecoveryCredentialBody,
    counter: statement,
    evidence: AgentEvidence,
    /** What the agent found before the plane answered. */
    disk_reserve: Type.Boolean(),
    clock_skew_ms: Type.Integer(),
  },
  closed,
)
export type RehearseRequest = Static<typeof RehearseRequest>
export const RehearseResponse = Type.Object({
  outcome: Type.Union([Type.Literal('passed'), Type.Literal('failed')]),
  step: Type.Union([Type.Enum([...rehearsalSteps]), Type.Null()]),
  why: Type.Union([Type.String(), Type.Null()]),
})

/** A file for `muster agent repair`: carried by hand, so that it also renews a trust that has gone stale. No private key. */
export const RepairBundle = Type.Object({
  kind: Type.Literal('muster-repair-bundle-1'),
  domain: Type.String({ maxLength: 253 }),
  node_id: NodeIdText,
  /** Works once. */
  recovery_token: Type.String({ maxLength: 256 }),
  recovery_urls: Type.Array(Type.String({ maxLength: 512 }), { minItems: 1, maxItems: 16 }),
  recovery_roots: Type.Array(Type.String({ maxLength: 32 * 1024 }), { minItems: 1, maxItems: 8 }),
  statement_keys: Type.Array(Type.String({ maxLength: 1024 }), { minItems: 1, maxItems: 8 }),
  /** The certificate of the recovery listener carries the plane's mark. Left out by planes before 0.4.0. */
  marked: Type.Optional(Type.Boolean()),
  endpoint_set: Type.Object({ id: Type.String({ maxLength: 128 }), revision: Type.Integer() }),
  issued: Type.Object({
    id: Type.String({ maxLength: 64 }),
    by: Type.String({ maxLength: 128 }),
    reason: Type.String({ maxLength: 256 }),
    at: Type.String({ maxLength: 64 }),
    expires_at: Type.String({ maxLength: 64 }),
    journal: Type.String({ maxLength: 128 }),
  }),
})
export type RepairBundle = Static<typeof RepairBundle>

const exampleEvidence = {
  instance: 'Zm9ydHktdHdvLWFuZC1hLQ',
  hardware: { macs: ['aa:bb:cc:dd:ee:01'], bmc_serial: null },
  machine: null,
  agent_version: '1.0.0',
}

export const recoveryApi = {
  recover: endpoint({
    method: 'POST',
    path: '/v1/recover',
    access: 'anyone',
    summary: 'Proves a recovery credential, and gets a certificate in a new epoch',
    body: RecoverRequest,
    answer: RecoverResponse,
    example: {
      request: {
        node_id: 'gpu-001',
        credential: { kind: 'bearer', token: 'recover_(43 characters)' },
        counter: 'counter1.(canonical JSON).(signature)',
        csr: '-----BEGIN CERTIFICATE REQUEST-----\n(for a new key)\n-----END CERTIFICATE REQUEST-----\n',
        failure: {
          class: 'cert_expired',
          code: 'CLIENT_CERT_EXPIRED',
          since: '2026-11-15T09:30:00.000Z',
          cert_not_after: '2026-11-15T09:30:00.000Z',
        },
        evidence: exampleEvidence,
        correlation: '01KTZ4M5N6P7Q8R9S0T1V2W3X5',
      },
    },
  }),
  rehearse: endpoint({
    method: 'POST',
    path: '/v1/rehearse',
    access: 'anyone',
    summary: 'The same ceremony, and nothing changes: says whether the node would recover',
    body: RehearseRequest,
    answer: RehearseResponse,
    example: {
      request: {
        node_id: 'gpu-001',
        credential: { kind: 'bearer', token: 'recover_(43 characters)' },
        counter: 'counter1.(canonical JSON).(signature)',
        evidence: exampleEvidence,
        disk_reserve: true,
        clock_skew_ms: 120,
      },
      answer: { outcome: 'passed', step: null, why: null },
    },
  }),
}
