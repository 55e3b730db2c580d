// A route says who may call it. There is no way to register one without saying so, and a test walks them all.

import type { TSchema } from 'typebox'
import type { Refusal } from '#domain/core/refusal.ts'
import type { AgentEvidence } from '#wire/api/agent-evidence.ts'
import type { Principal, Role } from '#domain/core/principal.ts'

export type Access =
  /** No proof asked for. */
  | 'anyone'
  /** A node, for itself: the `{id}` of the path has to be its own. */
  | 'node-itself'
  /** An operator with at least this role. */
  | Role

export type Route<P extends Principal = Principal> = {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** With `:name` for parameters. */
  readonly path: string
  readonly access: Access
  readonly summary: string
  /** Says how the plane is, so it is answered whatever that is. */
  readonly always?: true
  /**
   * Cuts somebody off, so it is carried out whatever the standing, and also for an operator whom a database that cannot be
   * read does not know any more but this process does (authn/operator-key.ts).
   */
  readonly cutOff?: true
  /** A node in quarantine may call it too, once a repair bundle has given it a certificate. */
  readonly inQuarantine?: true
  readonly params?: TSchema
  readonly query?: TSchema
  readonly body?: TSchema
  readonly answer?: TSchema
  /** `upgrade`: the path is taken over by the WebSocket channel instead of being answered. */
  readonly kind?: 'upgrade'
  handle(call: Call<P>): Promise<Answer | Refusal>
}

export type Call<P extends Principal = Principal> = {
  readonly principal: P
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  /** Already checked against the route's schema. */
  readonly body: unknown
  readonly correlation: string
  /** What the calling agent says of its process and machine; null from those that say nothing. */
  readonly evidence: AgentEvidence | null
}

export type Answer = {
  readonly kind: 'answer'
  /** 503: not a refusal, but the plane saying that it is not ready. */
  readonly status: 200 | 201 | 503
  /** An object is sent as JSON; text and bytes as they are, under `contentType`. */
  readonly body: object | string | Uint8Array
  readonly contentType?: string
  /** Names the body, so that a caller that has it already is not sent it again. */
  readonly etag?: string
}

export const answer = (body: object | string, status: Answer['status'] = 200): Answer => ({
  kind: 'answer',
  status,
  body,
})
