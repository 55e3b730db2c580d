// Frames from the plane, parsed once. Bodies may hold fields we do not know; types we do not know are answered.

import { Type, type Static, type TSchema } from 'typebox'
import { matchesSchema } from '#platform/json-schema.ts'
import type { PlaneFrame } from '#wire/channel/channel.ts'
import { EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import { ConfigOverlay } from '#wire/fleet/overlay.ts'
import { IssuerRoots } from '#wire/identity/identity-api.ts'
import { Peer, PeerRevision, WireguardConfig, WireguardKeyText } from '#wire/network/peers.ts'
import { ConfigOutput, mostOutputs } from '#wire/programs/programs-api.ts'
import { longestSighting } from '#wire/core/statement.ts'
import { longestTaskEnvelope } from '#wire/core/task-statements.ts'
import { faultOfEndpoints, faultOfIssuerRoots, faultOfProfile, faultOfRoots } from '#agent/state/certificate-answer.ts'
import { faultOfPeers, faultOfWireguard } from '#agent/network/peer-fault.ts'
import { faultOfOutputs } from '#agent/programs/wanted-outputs.ts'

const Envelope = Type.Object({
  stream: Type.Integer({ minimum: 0, maximum: 0xffffffff }),
  seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  ack: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  type: Type.String({ minLength: 1, maxLength: 64 }),
  body: Type.Object({}),
})

const revision = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const HelloBody = Type.Object({
  server_time: Type.String({ maxLength: 64 }),
  session: Type.Integer({ minimum: 0 }),
  capabilities: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 }),
  ping_every_ms: Type.Integer({ minimum: 100, maximum: 3_600_000 }),
})
export const ConfigBody = Type.Object({
  revision,
  vcluster: Type.Union([Type.String({ maxLength: 256 }), Type.Null()]),
  profile: EnrollResponse.properties.profile,
  endpoints: EnrollResponse.properties.endpoints,
  // Left out by older planes.
  overlay: Type.Optional(ConfigOverlay),
  wireguard: Type.Optional(Type.Union([WireguardConfig, Type.Null()])),
  outputs: Type.Optional(Type.Array(ConfigOutput, { maxItems: mostOutputs })),
})
const TrustBody = Type.Object({
  revision,
  roots: Type.Array(Type.String({ maxLength: 32 * 1024 })),
  withdrawn_issuers: EnrollResponse.properties.withdrawn_issuers,
})
const ClosingBody = Type.Object({
  code: Type.String({ maxLength: 64 }),
  detail: Type.Union([Type.String({ maxLength: 1024 }), Type.Null()]),
  retry_after_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 3_600_000 })),
})
const ReportedBody = Type.Object({
  instance: Type.String({ maxLength: 64 }),
  number: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
})
const SightingBody = Type.Object({ statement: Type.String({ maxLength: longestSighting }) })
const PeersBody = Type.Object({
  base: Type.Union([PeerRevision, Type.Null()]),
  revision: PeerRevision,
  remove: Type.Array(WireguardKeyText),
  add: Type.Array(Peer),
  more: Type.Boolean(),
})
const ProgramListsBody = Type.Object({
  lists: Type.Array(Type.Object({ issuer: Type.String({ maxLength: 128 }), number: Type.Integer({ minimum: 0 }) }), {
    maxItems: 64,
  }),
  outside_roots: Type.Optional(Type.String({ maxLength: 128 })),
})
// The helper verifies it.
const TaskBody = Type.Object({ task: Type.String({ minLength: 1, maxLength: longestTaskEnvelope }) })
const TaskVerifiersBody = Type.Object({ number: revision })
const UnknownTypeBody = Type.Object({ type: Type.String({ maxLength: 64 }) })

export type ReadFrame =
  | { readonly kind: 'frame'; readonly frame: PlaneFrame }
  | { readonly kind: 'unknown'; readonly seq: number; readonly type: string }
  | { readonly kind: 'malformed'; readonly why: string }

const malformed = (why: string): ReadFrame => ({ kind: 'malformed', why })

export const readPlaneFrame = (text: string): ReadFrame => {
  const value = jsonOrNull(text)
  if (!matchesSchema(Envelope, value)) return malformed('not a frame')
  switch (value.type) {
    case 'hello':
      return framed(
        value,
        HelloBody,
        () => null,
        (body) => ({ type: 'hello', body }),
      )
    case 'config':
      return framed(
        value,
        ConfigBody,
        (body) =>
          faultOfProfile(body.profile) ??
          faultOfEndpoints(body.endpoints) ??
          faultOfWireguard(body.wireguard ?? null) ??
          faultOfOutputs(body.outputs ?? []),
        (body) => ({ type: 'config', body }),
      )
    case 'trust':
      return framed(
        value,
        TrustBody,
        (body) => faultOfRoots(body.roots),
        (body) => ({ type: 'trust', body }),
      )
    case 'closing':
      return framed(
        value,
        ClosingBody,
        () => null,
        (body) => ({ type: 'closing', body }),
      )
    case 'reported':
      return framed(
        value,
        ReportedBody,
        () => null,
        (body) => ({ type: 'reported', body }),
      )
    case 'sighting':
      return framed(
        value,
        SightingBody,
        () => null,
        (body) => ({ type: 'sighting', body }),
      )
    case 'peers':
      return framed(value, PeersBody, faultOfPeers, (body) => ({ type: 'peers', body }))
    case 'program_lists':
      return framed(
        value,
        ProgramListsBody,
        () => null,
        (body) => ({ type: 'program_lists', body }),
      )
    case 'task':
      return framed(
        value,
        TaskBody,
        () => null,
        (body) => ({ type: 'task', body }),
      )
    case 'task_verifiers':
      return framed(
        value,
        TaskVerifiersBody,
        () => null,
        (body) => ({ type: 'task_verifiers', body }),
      )
    case 'issuer_roots':
      return framed(value, IssuerRoots, faultOfIssuerRoots, (body) => ({ type: 'issuer_roots', body }))
    case 'unknown_type':
      return framed(
        value,
        UnknownTypeBody,
        () => null,
        (body) => ({ type: 'unknown_type', body }),
      )
    default:
      return { kind: 'unknown', seq: value.seq, type: value.type }
  }
}

type Tail = PlaneFrame extends infer F
  ? F extends { type: string; body: unknown }
    ? Pick<F, 'type' | 'body'>
    : never
  : never

const framed = <S extends TSchema>(
  { stream, seq, ack, type, body }: Static<typeof Envelope>,
  schema: S,
  faultOf: (body: Static<S>) => string | null,
  tail: (body: Static<S>) => Tail,
): ReadFrame => {
  if (!matchesSchema(schema, body)) return malformed(`the body of ${type} does not fit`)
  const fault = faultOf(body)
  if (fault !== null) return malformed(`${type}: ${fault}`)
  return { kind: 'frame', frame: { stream, seq, ack, ...tail(body) } }
}

const jsonOrNull = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
