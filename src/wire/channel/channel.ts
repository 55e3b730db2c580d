// The channel: WebSocket subprotocol `muster.v1`. JSON text frames carry stream, sequence, acknowledgement and type;
// stream 0 is control. Binary frames are reserved for streams with credit (exec sessions, logs), which come later.
//
// Both sides send a `hello` first. Types a side does not know are answered with `unknown_type`, never dropped.

import { Type, type Static } from 'typebox'
import { CapabilityReport, OverlayState } from '#wire/node/node-runs.ts'
import { PeersApplied, PeersHave, type PlanePeers } from '#wire/network/peers.ts'
import { OutputsState, type ConfigOutput, type PlaneProgramLists } from '#wire/programs/programs-api.ts'
import { IssuerRootsRevision, type IssuerRoots } from '#wire/identity/identity-api.ts'
import { ReportBody } from '#wire/node/report.ts'
import { TasksState, type PlaneTask, type PlaneTaskVerifiers } from '#wire/tasks/task-frames.ts'
import { mostEarlier } from '#domain/continuity/sighting.ts'
import { longestSighting } from '#wire/core/statement.ts'

export const channelProtocol = 'muster.v1'
export const channelFrameLimit = 64 * 1024

const frame = <T extends string, B extends Record<string, import('typebox').TSchema>>(type: T, body: B) =>
  Type.Object(
    {
      stream: Type.Integer({ minimum: 0, maximum: 0xffffffff }),
      /** Counts up from 1 in each direction of a stream. */
      seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
      /** The highest sequence handled of the other side. */
      ack: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
      type: Type.Literal(type),
      body: Type.Object(body, { additionalProperties: false }),
    },
    { additionalProperties: false },
  )

/** The agent's first frame. */
const AgentHello = frame('hello', {
  agent_version: Type.String({ maxLength: 64 }),
  capabilities: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 }),
  /** The configuration and trust revisions the agent already has. */
  config_revision: Type.Integer({ minimum: 0 }),
  trust_revision: Type.Integer({ minimum: 0 }),
})

/** "I run under this revision now", or could not keep it. */
const AgentApplied = frame('applied', {
  config_revision: Type.Integer({ minimum: 0 }),
  trust_revision: Type.Integer({ minimum: 0 }),
  persisted: Type.Boolean(),
  detail: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
})

/** How the node is doing. Numbered by the agent's process, so that none is lost or counted twice across channels. */
const AgentReport = frame('report', ReportBody.properties)

/**
 * Once, and only to a plane that offers `sighting` in its hello: the newest the agent has kept, or null for none. `earlier`
 * only to one that offers `earlier_sightings`.
 */
const AgentSighting = frame('sighting', {
  statement: Type.Union([Type.String({ minLength: 1, maxLength: longestSighting }), Type.Null()]),
  earlier: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: longestSighting }), { maxItems: mostEarlier }),
  ),
})

/** Both only to a plane that offers `overlay` in its hello. */
const AgentOverlayState = frame('overlay_state', OverlayState)
const AgentCapabilities = frame('capabilities', CapabilityReport)

/** Only to a plane that offers `peers`, once after the hello: the plane sends peers from then on. */
const AgentPeersHave = frame('peers_have', PeersHave)

const AgentPeersApplied = frame('peers_applied', PeersApplied)

/** Only to a plane that offers `outputs`: everything once after the hello, and then with each change. */
const AgentOutputsState = frame('outputs_state', OutputsState)

/** Only to a plane that offers `tasks`, while the helper takes tasks: after the hello, and when the statement held is another. */
const AgentTasksState = frame('tasks_state', TasksState.properties)

/** Only to a plane that offers `issuer-roots`: once after the hello, and again when another set is on the disk. */
const AgentIssuerRoots = frame('issuer_roots_state', { revision: IssuerRootsRevision })

const UnknownType = frame('unknown_type', { type: Type.String({ maxLength: 64 }) })

export const AgentFrame = Type.Union([
  AgentHello,
  AgentApplied,
  AgentReport,
  AgentSighting,
  AgentOverlayState,
  AgentCapabilities,
  AgentPeersHave,
  AgentPeersApplied,
  AgentOutputsState,
  AgentTasksState,
  AgentIssuerRoots,
  UnknownType,
])
export type AgentFrame = Static<typeof AgentFrame>

/** The plane's first frame. */
export type PlaneHello = {
  server_time: string
  session: number
  capabilities: string[]
  ping_every_ms: number
}

/** The configuration a node runs under. A newer revision replaces the older whole. */
export type PlaneConfig = {
  revision: number
  vcluster: string | null
  profile: import('#wire/identity/identity-api.ts').AgentProfile
  endpoints: import('#wire/identity/identity-api.ts').EndpointSet
  /** What to run and how to hold it. Left out by older planes. */
  overlay?: import('#wire/fleet/overlay.ts').ConfigOverlay
  /** Null or left out: no part in the WireGuard network. */
  wireguard?: import('#wire/network/peers.ts').WireguardConfig | null
  /** The programs of this node that get a leaf. Left out by older planes, and for agents that do not say `outputs`. */
  outputs?: ConfigOutput[]
}

/** The roots to trust from now on. */
export type PlaneTrust = {
  revision: number
  roots: string[]
  /** Key identifiers of authorities below those roots that are no longer trusted; left out where there are none. */
  withdrawn_issuers?: string[]
}

/** Why the channel is about to end; the socket follows. `retry_after_ms`: when to come back, where many are sent away. */
export type PlaneClosing = { code: string; detail: string | null; retry_after_ms?: number }

/** The highest report of this instance that was taken: the agent forgets those up to it, and sends the rest again. */
export type PlaneReported = { instance: string; number: number }

/** A sighting of the journal. The agent keeps it if it is newer than its own, and shows it to the next plane it connects to. */
export type PlaneSighting = { statement: string }

export type PlaneFrame = { stream: number; seq: number; ack: number } & (
  | { type: 'hello'; body: PlaneHello }
  | { type: 'config'; body: PlaneConfig }
  | { type: 'trust'; body: PlaneTrust }
  | { type: 'closing'; body: PlaneClosing }
  | { type: 'reported'; body: PlaneReported }
  | { type: 'sighting'; body: PlaneSighting }
  | { type: 'peers'; body: PlanePeers }
  | { type: 'program_lists'; body: PlaneProgramLists }
  | { type: 'task'; body: PlaneTask }
  | { type: 'task_verifiers'; body: PlaneTaskVerifiers }
  | { type: 'issuer_roots'; body: IssuerRoots }
  | { type: 'unknown_type'; body: { type: string } }
)

/** Frames that a plane takes in addition to those that every plane takes, as its hello says. */
export const sightingCapability = 'sighting'
export const earlierSightingsCapability = 'earlier_sightings'
/** Both sides: the plane sends the set, and the agent says which one it has. */
export const issuerRootsCapability = 'issuer-roots'
/** Of all that are sent together, in characters: far below the limit of a frame. */
export const longestEarlier = 40_960

/** Liveness travels as WebSocket pings, both ways: an idle channel costs no JSON. */
export const pingEveryMs = 20_000
export const pongWithinMs = 60_000
