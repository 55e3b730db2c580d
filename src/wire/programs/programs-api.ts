// Leaves for the programs of a node: which of them it is to have, how it gets one, and the revocation lists beside them.

import { Type, type Static } from 'typebox'
import { keyTypes } from '#domain/core/profile.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeIdText, NodeParams, oneOf, orNull, text } from '#wire/core/shapes.ts'

export const OutputName = Type.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$' })

/** Where it lands on the host, which the host's own agent.toml bounds. */
export const OutputFilesBody = Type.Object({
  directory: orNull(Type.String({ pattern: '^/[A-Za-z0-9._/-]+$', maxLength: 255 })),
  owner: orNull(text(32)),
  group: orNull(text(32)),
  key_mode: Type.Integer({ minimum: 0o400, maximum: 0o660 }),
  combined: Type.Boolean(),
  pkcs12: Type.Boolean(),
  reload: orNull(Type.String({ pattern: '^[a-z0-9][a-z0-9._@-]{0,62}$' })),
})

/** Part of a configuration, for agents that say `outputs` in their hello. */
export const ConfigOutput = Type.Object({
  name: OutputName,
  key_type: oneOf(keyTypes),
  lifetime_ms: Type.Integer({ minimum: 1 }),
  usage: oneOf(['client', 'server', 'both'] as const),
  /** What its leaf carries, e.g. `dns:db.example` and `ip:10.0.0.7`: where the leaf at hand differs, a new one is due. */
  names: Type.Array(text(255), { maxItems: 64 }),
  files: OutputFilesBody,
})
export type ConfigOutput = Static<typeof ConfigOutput>

export const mostOutputs = 16

/**
 * What nodes take of the authorities above programs: agents from a plane, helpers from an agent. A domain has a root and an issuing
 * CA, two of each while one is replaced, and every CA that was withdrawn stays on record until it would have ended.
 */
export const mostProgramRoots = 8
export const mostProgramLists = 64
/** One list in PEM: about 30,000 denied leaves. */
export const longestProgramList = 2 << 20
/** All lists in one answer of the plane. */
export const longestProgramLists = 4 << 20

/** In one answer. Issuers beyond that are left out, by their names. */
export const mostOutsideRoots = 16

/**
 * PEM, one each, of roots that leaves of programs hang under besides: those of outside issuers, whose lists the plane does not have. Left out where
 * there are none, and by planes before 0.7.
 */
const OutsideRoots = Type.Array(Type.String({ maxLength: 32 * 1024 }), { maxItems: mostOutsideRoots })

const ProgramParams = Type.Object({ id: NodeIdText, output: OutputName }, closed)

/** `POST /v1/nodes/{id}/programs/{output}` */
export const ProgramRequest = Type.Object(
  {
    csr: text(16_384),
    /** The agent takes leaves below roots of outside issuers; to a plane that understands it. Without it the built-in authority signs. */
    outside_roots: Type.Optional(Type.Boolean()),
  },
  closed,
)
export const ProgramResponse = Type.Object({
  /** PEM: the leaf, then what is between it and the programs root. */
  certificate_chain: Type.String(),
  /** PEM of the programs roots, one each. No agent trusts them for a plane. */
  roots: Type.Array(Type.String()),
  outside_roots: Type.Optional(OutsideRoots),
  server_time: Type.String(),
})
export type ProgramResponse = Static<typeof ProgramResponse>

/** `GET /v1/nodes/{id}/program-lists`: one for every CA of the chains of programs, the roots included. */
export const ProgramLists = Type.Object({
  roots: Type.Array(Type.String()),
  outside_roots: Type.Optional(OutsideRoots),
  lists: Type.Array(
    Type.Object({
      /** The key identifier of the CA, hex. */
      issuer: Type.String(),
      role: oneOf(['root', 'issuing'] as const),
      number: Type.Integer({ minimum: 0 }),
      next_update: Type.String(),
      /** PEM. */
      list: Type.String(),
      /** Of the CA, PEM, so that its list can be verified where no leaf at hand hangs below it. A root is in `roots`. */
      certificate: Type.Optional(Type.String()),
    }),
  ),
})
export type ProgramLists = Static<typeof ProgramLists>

export const programsApi = {
  issue: endpoint({
    method: 'POST',
    path: '/v1/nodes/:id/programs/:output',
    access: 'node-itself',
    summary: 'Gets a leaf for a program of the node, for a new key',
    params: ProgramParams,
    body: ProgramRequest,
    answer: ProgramResponse,
    example: {
      request: { csr: '-----BEGIN CERTIFICATE REQUEST-----\n(for a new key)\n-----END CERTIFICATE REQUEST-----\n' },
    },
  }),
  lists: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id/program-lists',
    access: 'node-itself',
    summary: 'The revocation lists of every authority above the leaves of programs',
    params: NodeParams,
    answer: ProgramLists,
  }),
}

/** Of the path of an output on its host, in characters. */
export const longestPlace = 400

/** The agent's frame `outputs_state`: what is in place on the host. */
export const OutputsState = {
  outputs: Type.Array(
    Type.Object(
      {
        name: OutputName,
        /** The folder that its program reads; null: this host has none for it. */
        place: Type.Optional(orNull(text(longestPlace))),
        /** Of the leaf that programs read now, hex; null: none. */
        serial: orNull(Type.String({ pattern: '^[0-9a-f]{1,40}$' })),
        /** Why the newest could not be put in place, or its reload failed; null: it is. */
        failure: orNull(text(256)),
      },
      closed,
    ),
    { maxItems: mostOutputs },
  ),
}

/** The plane's frame `program_lists`: there are newer lists, by the number of each. */
export type PlaneProgramLists = {
  lists: { issuer: string; number: number }[]
  /** `rootsHash` (pki/pem.ts) of the roots of outside issuers. Left out where there are none. */
  outside_roots?: string
}

export type OutputsStateBody = {
  outputs: { name: string; place: string | null; serial: string | null; failure: string | null }[]
}

/** Of `GET /v1/nodes/{id}`: an output that is listed for the node, and how it stands. */
export const OutputStandingView = Type.Object({
  output: Type.String(),
  /** `issued`: its agent has not said yet that this leaf is in place. */
  state: oneOf(['in_place', 'failed', 'issued', 'expired', 'no_leaf'] as const),
  /** Of the newest leaf; null: there is none. */
  serial: orNull(Type.String()),
  not_after: orNull(Type.String()),
  /** `built-in`, or the name of the outside issuer that signed it. Left out by planes before 0.7. */
  issuer: Type.Optional(orNull(Type.String())),
  /** DNS names and addresses that it carries. */
  names: Type.Array(Type.String()),
  /** As its agent says: the folder that its program reads, and the leaf in it. */
  place: orNull(Type.String()),
  serial_in_place: orNull(Type.String()),
  /** Why it is not in place, or what failed after it was put there; null: it is in place, and nothing failed. */
  why: orNull(Type.String()),
})
export type OutputStandingView = Static<typeof OutputStandingView>

/** In the hello of both sides: the plane answers the calls above, and the agent wants `outputs` in its configuration. */
export const outputsCapability = 'outputs'
