// What crosses the network between an operator (CLI, console, scripts) and the plane. Times are RFC 3339, durations
// milliseconds. Requests are closed; answers may grow.

import { Type, type Static } from 'typebox'
import { conditionNames, membershipKinds } from '#domain/core/node.ts'
import { keyTypes, joinMethods } from '#domain/core/profile.ts'
import { roles } from '#domain/core/principal.ts'
import { wireguardModes } from '#domain/core/wireguard.ts'
import { NodeIdText } from './node-api.ts'
import { ServiceBody } from '#wire/fleet/overlay.ts'
import { PolicyBody } from '#wire/fleet/policy-body.ts'
import { NodeRuns } from '#wire/node/node-runs.ts'
import { NodeEvidence, Recoverable, RepairView } from '#wire/node/node-evidence.ts'
import { WireguardView } from '#wire/network/wireguard-view.ts'
import { closed, oneOf, orNull, text } from '#wire/core/shapes.ts'

// ---- nodes

export const CertificateView = Type.Object({
  slot: oneOf(['current', 'pending', 'retired']),
  issuer: Type.String(),
  serial: Type.String(),
  sha256: Type.String(),
  issued_at: Type.String(),
  not_after: Type.String(),
})

export const ConditionView = Type.Object({
  name: oneOf(conditionNames),
  since: Type.String(),
  reason: Type.String(),
  evidence: Type.Record(Type.String(), Type.Unknown()),
})

/** One line of `node list`. */
export const NodeView = Type.Object({
  id: Type.String(),
  membership: oneOf(membershipKinds),
  since: Type.String(),
  profile: Type.String(),
  epoch: Type.Integer(),
  assurance: Type.String(),
  vcluster: orNull(Type.String()),
  scheduling: Type.Object({ state: Type.String(), reasons: Type.Array(Type.String()) }),
  /** How many run there, those included that are asked for. */
  allocations: Type.Integer(),
  /** Of the current certificate. */
  cert_not_after: orNull(Type.String()),
  channel_open: Type.Boolean(),
  last_seen: orNull(Type.String()),
  conditions: Type.Array(ConditionView),
  recoverable: Recoverable,
  /** What of its row in the database cannot be read; it is shut out. Left out where it can be read. */
  unreadable: Type.Optional(Type.String()),
})
export type NodeView = Static<typeof NodeView>

export const NodeDetail = Type.Object({
  ...NodeView.properties,
  /** Sentences: why the node is in the state it is in, and what could be done. */
  why: Type.Array(Type.String()),
  registered_at: Type.String(),
  registered_by: Type.String(),
  hardware: Type.Object({ macs: Type.Array(Type.String()), bmc_serial: orNull(Type.String()) }),
  facts: orNull(
    Type.Object({
      cpu_cores: Type.Integer(),
      memory_bytes: Type.Integer(),
      disk_bytes: Type.Integer(),
      arch: Type.String(),
    }),
  ),
  certificates: Type.Array(CertificateView),
  approvals: Type.Array(Type.Object({ by: Type.String(), at: Type.String() })),
  agent_version: orNull(Type.String()),
  source: orNull(Type.String()),
  config_revision: orNull(Type.Integer()),
  /** Channels open now, the current one last. */
  sessions: Type.Array(
    Type.Object({ number: Type.Integer(), since: orNull(Type.String()), serial: orNull(Type.String()) }),
  ),
  ...NodeRuns,
  evidence: NodeEvidence,
  repair: orNull(RepairView),
  /** Null: it takes no part in the WireGuard network. Left out by planes that have none. */
  wireguard: Type.Optional(orNull(WireguardView)),
})
export type NodeDetail = Static<typeof NodeDetail>

/** `GET /v1/nodes` */
export const NodeListQuery = Type.Object(
  {
    membership: Type.Optional(oneOf(membershipKinds)),
    profile: Type.Optional(text(64)),
    /** `none`: nodes in no vCluster. */
    vcluster: Type.Optional(text(63)),
    recoverable: Type.Optional(oneOf(['yes', 'no'])),
    schedulable: Type.Optional(oneOf(['yes', 'no'])),
    after: Type.Optional(NodeIdText),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)
export const NodeListAnswer = Type.Object({ nodes: Type.Array(NodeView), next: orNull(Type.String()) })

/** `POST /v1/nodes` */
export const RegisterRequest = Type.Object(
  {
    id: NodeIdText,
    profile: Type.Optional(text(64)),
    macs: Type.Optional(Type.Array(text(17), { maxItems: 64 })),
    bmc_serial: Type.Optional(text(128)),
  },
  closed,
)
export type RegisterRequest = Static<typeof RegisterRequest>

/** `POST /v1/nodes/{id}/quarantine|revoke|repair-bundle|settle` */
export const ReasonRequest = Type.Object({ reason: text(256) }, closed)
/** `POST /v1/nodes/{id}/drain|undrain|release|approve|deny` */
export const EmptyRequest = Type.Object({}, closed)
/** `POST /v1/nodes/{id}/drain`; `done` says that nothing runs there any more. */
export const DrainRequest = Type.Object({ done: Type.Optional(Type.Boolean()) }, closed)
/** `POST /v1/nodes/{id}/decommission` */
export const DecommissionRequest = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed)

// ---- tokens

export const TokenView = Type.Object({
  id: Type.String(),
  scope: oneOf(['node', 'domain']),
  node: orNull(Type.String()),
  profile: Type.String(),
  replace: Type.Boolean(),
  state: oneOf(['unused', 'bound', 'used', 'expired', 'revoked']),
  created_by: Type.String(),
  created_at: Type.String(),
  expires_at: Type.String(),
  used_at: orNull(Type.String()),
  used_by: orNull(Type.String()),
  /** Why it is good for nothing, where it was no operator who withdrew it. Left out by older planes. */
  why: Type.Optional(orNull(Type.String())),
})
export type TokenView = Static<typeof TokenView>

/** `POST /v1/tokens`. Without `node`: a token of the domain. */
export const CreateTokenRequest = Type.Object(
  {
    node: Type.Optional(NodeIdText),
    profile: Type.Optional(text(64)),
    replace: Type.Optional(Type.Boolean()),
    expires_ms: Type.Optional(Type.Integer({ minimum: 1000 })),
  },
  closed,
)
export type CreateTokenRequest = Static<typeof CreateTokenRequest>
/** The only time the secret is shown; `join` carries it too. */
export const CreateTokenAnswer = Type.Object({
  token: TokenView,
  secret: Type.String(),
  join: Type.String(),
  /** The node was not known and has been registered. */
  registered: Type.Boolean(),
})
export const TokenListQuery = Type.Object({ node: Type.Optional(NodeIdText) }, closed)
export const TokenListAnswer = Type.Object({ tokens: Type.Array(TokenView) })

// ---- profiles and the domain

export const ProfileBody = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' }),
    description: Type.String({ maxLength: 256 }),
    join: Type.Object(
      {
        allOf: Type.Array(oneOf(joinMethods), { minItems: 1, maxItems: 3 }),
        tokenScope: oneOf(['node', 'domain']),
        tokenTtlMs: Type.Integer({ minimum: 1000 }),
      },
      closed,
    ),
    certificate: Type.Object(
      {
        lifetimeMs: Type.Integer({ minimum: 1000 }),
        renewFrom: Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 }),
        renewTo: Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 }),
        keyTypes: Type.Array(oneOf(keyTypes), { minItems: 1, maxItems: 3 }),
        subject: Type.Object({ cn: text(64), o: text(64), ou: text(64) }, closed),
        uriSan: Type.Boolean(),
        aiaUrl: orNull(text(256)),
        cdpUrl: orNull(text(256)),
      },
      closed,
    ),
    keyStorage: oneOf(['file', 'memory', 'tpm']),
    onActiveConflict: oneOf(['prove', 'probe', 'reject']),
    probeSilenceMs: Type.Integer({ minimum: 6000, maximum: 3_600_000 }),
    comeback: Type.Object(
      { by: oneOf(['certificate', 'join', 'approve']), people: Type.Integer({ minimum: 0, maximum: 10 }) },
      closed,
    ),
    recovery: Type.Object(
      {
        mode: oneOf(['auto', 'approve', 'deny']),
        limit: Type.Integer({ minimum: 0, maximum: 1000 }),
        windowMs: Type.Integer({ minimum: 1000 }),
        rehearseEveryMs: Type.Integer({ minimum: 1000 }),
      },
      closed,
    ),
    onDuplicate: oneOf(['keep-live', 'fence']),
    wireguard: Type.Object(
      {
        mode: oneOf(wireguardModes),
        listenPort: Type.Integer({ minimum: 1, maximum: 65_535 }),
        mtu: Type.Integer({ minimum: 1280, maximum: 9000 }),
      },
      closed,
    ),
  },
  closed,
)

/** `POST /v1/profiles`: copies `from` and changes what `set` names, e.g. {"certificate.lifetimeMs": 3600000}. */
const Settings = Type.Record(Type.String({ pattern: '^[A-Za-z]+(\\.[A-Za-z]+)*$' }), Type.Unknown(), {
  maxProperties: 64,
})
export const CreateProfileRequest = Type.Object(
  { name: ProfileBody.properties.name, from: Type.Optional(text(64)), set: Type.Optional(Settings) },
  closed,
)
/** `PATCH /v1/profiles/{name}` and `PATCH /v1/domain` */
export const SetRequest = Type.Object({ set: Settings }, closed)
export const ProfileListAnswer = Type.Object({ profiles: Type.Array(ProfileBody) })

export const DomainBody = Type.Object({
  name: Type.String(),
  defaultProfile: Type.String(),
  livenessGraceMs: Type.Integer({ minimum: 0 }),
  strangersPerMinute: Type.Integer({ minimum: 1 }),
  strangersPerMinutePerSource: Type.Integer({ minimum: 1 }),
  clockToleranceMs: Type.Integer({ minimum: 0 }),
  stuckEnrollmentMs: Type.Integer({ minimum: 1000 }),
  drainMs: Type.Integer({ minimum: 0 }),
  /** Of nodes without a vCluster. */
  maintenance: Type.Object({ policy: PolicyBody, timeSync: orNull(ServiceBody) }),
  /** Of the WireGuard network; null: made from the name of the domain. */
  overlayPrefix: orNull(Type.String()),
})

// ---- the journal

export const EntryView = Type.Object({
  cursor: Type.String(),
  hash: Type.String(),
  /** The entry as it was hashed. */
  entry: Type.Record(Type.String(), Type.Unknown()),
})
export const JournalQueryBody = Type.Object(
  {
    /** A cursor names the place in every chain. */
    after: Type.Optional(text(8000)),
    last: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    node: Type.Optional(NodeIdText),
    type: Type.Optional(text(64)),
    /** Wait up to so long for something new: how `journal follow` works. */
    wait_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 30_000 })),
  },
  closed,
)
export const JournalAnswer = Type.Object({ entries: Type.Array(EntryView), next: orNull(Type.String()) })
export const VerifyAnswer = Type.Object({
  intact: Type.Boolean(),
  entries: Type.Integer(),
  heads: Type.Array(
    Type.Object({ chain: Type.String(), sequence: Type.Integer(), hash: Type.String(), key_id: Type.String() }),
  ),
  broken: orNull(Type.Object({ chain: Type.String(), from: Type.Integer(), to: Type.Integer(), why: Type.String() })),
  /** Rows compared with the journal. A plane before 0.2.1 does not do that. */
  rows: Type.Optional(
    Type.Object({
      nodes: Type.Integer(),
      tokens: Type.Integer(),
      differences: Type.Array(
        Type.Object({ row: Type.String(), subject: Type.String(), why: Type.String(), fenced: Type.Boolean() }),
      ),
      /** There are more than are listed. */
      more: Type.Boolean(),
    }),
  ),
  verified_at: Type.Optional(Type.String()),
})

// ---- operator keys

export const KeyView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  role: oneOf(roles),
  created_by: Type.String(),
  created_at: Type.String(),
  revoked_at: orNull(Type.String()),
  /** No plane of this domain wrote its row: it grants nothing. Left out of others. */
  forged: Type.Optional(Type.Boolean()),
})
export const keyNameShape = '^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$'
export const CreateKeyRequest = Type.Object(
  { name: Type.String({ pattern: keyNameShape }), role: oneOf(roles) },
  closed,
)
/** The only time the key is shown. */
export const CreateKeyAnswer = Type.Object({ key: KeyView, secret: Type.String() })
export const KeyListAnswer = Type.Object({ keys: Type.Array(KeyView) })
export const WhoAmI = Type.Object({ id: Type.String(), name: Type.String(), role: oneOf(roles) })

// ---- health

export const Readiness = Type.Object({
  ready: Type.Boolean(),
  reasons: Type.Array(Type.String()),
  /** What it cannot do though it is ready. */
  warnings: Type.Array(Type.String()),
})
