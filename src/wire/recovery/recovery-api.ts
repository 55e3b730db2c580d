// What crosses the network at the recovery listener, and the challenge that the node listener gives too. The listener has
// a trust of its own; nobody presents a client certificate there.

import { Type, type Static } from 'typebox'
import { rehearsalSteps } from '#domain/core/node.ts'
import { failureClasses } from '#domain/recovery/failure-class.ts'
import { AgentEvidence } from '#wire/api/agent-evidence.ts'
import { EnrollResponse, NodeIdText } from '#wire/api/node-api.ts'
import { proof, RecoveryRegistration } from './recovery-registration.ts'
import { longestSighting, longestStatement } from '#wire/api/statement.ts'
import { closed, text } from '#wire/core/shapes.ts'

const statement = text(longestStatement)
const nonce = Type.String({ pattern: '^[A-Za-z0-9_-]{22,64}$' })
const correlationShape = '^[A-Za-z0-9-]{8,64}$'

/** `POST /v1/challenge`, on both listeners. Answered for any name: who exists is not told to strangers. */
export const ChallengeRequest = Type.Object({ nonce, node_id: Type.Optional(NodeIdText) }, closed)
export type ChallengeRequest = Static<typeof ChallengeRequest>
export const ChallengeResponse = Type.Object({ challenge: Type.String({ maxLength: longestStatement }) })

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
    /** What the agent found out by itself. */
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
