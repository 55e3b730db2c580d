// The calls about issuers and what they answer: times are RFC 3339, no secret is in an answer, and answers may grow.

import { Type, type Static } from 'typebox'
import { builtIn, type IssuerAccess, type OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, NameText, oneOf, orNull, ReasonRequest } from '#wire/core/shapes.ts'
import {
  IssuerName,
  StepCaRequest,
  VaultRequest,
  AddIssuerRequest,
  ChangeIssuerRequest,
  requestOf,
} from './issuer-settings.ts'

const issuerKinds = ['built-in', 'step-ca', 'vault'] as const

const IssuerParams = Type.Object({ name: IssuerName }, closed)

const AuthorityView = Type.Object({
  id: Type.String(),
  subject: Type.String(),
  fingerprint: Type.String(),
  not_after: Type.String(),
})

/** As this replica finds it. */
const HealthView = Type.Object({
  /** Requests that are there now, and that wait for one of 16 slots. */
  asking: Type.Integer(),
  waiting: Type.Integer(),
  answers_per_second: Type.Number(),
  answered_at: orNull(Type.String()),
  /** Null: it is asked. Else since when it is not, but for a probe now and then. */
  away_since: orNull(Type.String()),
  away_because: orNull(Type.String()),
  /** What it last refused to sign, within the last hour. It answers: a setting there is wrong. Null: nothing. */
  refused_at: orNull(Type.String()),
  refused_because: orNull(Type.String()),
  /** By how much its clock was ahead of this replica's at its last answer, below 0 behind. Null: it has not said. */
  clock_ahead_ms: orNull(Type.Integer()),
})

export const IssuerView = Type.Object({
  name: Type.String(),
  kind: oneOf(issuerKinds),
  state: oneOf(['enabled', 'disabled', 'forged']),
  /** Of `disabled`. */
  disabled: orNull(Type.Object({ since: Type.String(), by: Type.String(), reason: Type.String() })),
  url: orNull(Type.String()),
  server_roots: Type.Array(Type.String({ description: 'SHA-256 of the certificate' })),
  roots: Type.Array(AuthorityView),
  step_ca: orNull(StepCaRequest),
  vault: orNull(VaultRequest),
  /** Which there are; never what they are. */
  secrets: Type.Array(Type.String()),
  /** step-ca: what the X5C provisioner for renewals has as its `roots`, PEM; null: it needs none. */
  renewal_root: orNull(Type.String()),
  /** Null: no test has passed, and no profile may name it. */
  tested_at: orNull(Type.String()),
  takes_serial: orNull(Type.Boolean()),
  revokes: orNull(Type.Boolean()),
  lists: orNull(Type.Boolean()),
  /** That it was tested with. */
  longest_lifetime_ms: orNull(Type.Integer()),
  /** Who answers whether one of its leaves is revoked, as they name it; nobody, where both are empty. Null: it has signed none yet. */
  status: orNull(Type.Object({ ocsp: Type.Array(Type.String()), crl: Type.Array(Type.String()) })),
  profiles: Type.Array(Type.String({ description: 'that name it' })),
  outputs: Type.Array(Type.String({ description: 'that name it, each with the profile or vCluster that lists it' })),
  worker_issuers: Type.Array(Type.String({ description: 'whose workers it signs for' })),
  /** Certificates to be revoked there, and since when the oldest waits. */
  revocations_waiting: Type.Integer(),
  revocations_waiting_since: orNull(Type.String()),
  /** Null for the built-in one. */
  health: orNull(HealthView),
  added_at: orNull(Type.String()),
  added_by: orNull(Type.String()),
})
export type IssuerView = Static<typeof IssuerView>

/** What is not in the row. */
export type IssuerSurroundings = {
  readonly serverRoots: readonly string[]
  readonly roots: IssuerView['roots']
  readonly renewalRoot: string | null
  readonly profiles: readonly string[]
  readonly outputs: readonly string[]
  readonly workerIssuers: readonly string[]
  readonly status: { readonly ocsp: readonly string[]; readonly crl: readonly string[] } | null
  readonly waiting: { readonly count: number; readonly sinceMs: number | null }
  readonly health: {
    readonly asking: number
    readonly waiting: number
    readonly perSecond: number
    readonly away: { readonly sinceMs: number; readonly why: string } | null
    readonly answeredAtMs: number | null
    readonly refused: { readonly atMs: number; readonly why: string } | null
    readonly aheadMs: number | null
  }
}

export const issuerView = (issuer: OutsideIssuer, around: IssuerSurroundings): IssuerView => {
  const { name, access, state, abilities, url } = issuer
  const { away } = around.health
  return {
    ...{ name, url, kind: access.kind },
    state: issuer.forged ? 'forged' : state.kind === 'disabled' ? 'disabled' : 'enabled',
    disabled: state.kind === 'disabled' ? { since: isoTime(state.sinceMs), by: state.by, reason: state.why } : null,
    server_roots: [...around.serverRoots],
    roots: [...around.roots],
    ...shownAccess(access),
    secrets: [...(issuer.secrets?.names ?? [])],
    renewal_root: around.renewalRoot,
    tested_at: isoTimeOrNull(abilities?.testedAtMs ?? null),
    takes_serial: abilities?.takesSerial ?? null,
    revokes: abilities?.revokes ?? null,
    lists: abilities?.lists ?? null,
    longest_lifetime_ms: abilities?.longestMs ?? null,
    status: around.status === null ? null : { ocsp: [...around.status.ocsp], crl: [...around.status.crl] },
    profiles: [...around.profiles],
    outputs: [...around.outputs],
    worker_issuers: [...around.workerIssuers],
    revocations_waiting: around.waiting.count,
    revocations_waiting_since: isoTimeOrNull(around.waiting.sinceMs),
    health: {
      asking: around.health.asking,
      waiting: around.health.waiting,
      answers_per_second: Math.round(around.health.perSecond * 10) / 10,
      answered_at: isoTimeOrNull(around.health.answeredAtMs),
      away_since: isoTimeOrNull(away?.sinceMs ?? null),
      away_because: away?.why ?? null,
      refused_at: isoTimeOrNull(around.health.refused?.atMs ?? null),
      refused_because: around.health.refused?.why ?? null,
      clock_ahead_ms: around.health.aheadMs,
    },
    added_at: isoTime(issuer.addedAtMs),
    added_by: issuer.addedBy,
  }
}

/** The authority of the domain: `muster ca show` says the rest. */
export const builtInView = (profiles: readonly string[], longestMs: number): IssuerView => ({
  ...{ name: builtIn, kind: 'built-in', state: 'enabled', disabled: null, url: null },
  ...{ server_roots: [], roots: [], step_ca: null, vault: null, secrets: [], renewal_root: null },
  ...{ tested_at: null, takes_serial: true, revokes: true, lists: true, longest_lifetime_ms: longestMs },
  ...{
    status: null,
    profiles: [...profiles],
    outputs: [],
    worker_issuers: [],
    revocations_waiting: 0,
    revocations_waiting_since: null,
  },
  ...{ health: null, added_at: null, added_by: null },
})

const shownAccess = (access: IssuerAccess): Pick<IssuerView, 'step_ca' | 'vault'> => ({
  step_ca: null,
  vault: null,
  ...requestOf(access),
})

export const IssuerList = Type.Object({ issuers: Type.Array(IssuerView) })

/** Leaves like those of these; all left out: of those that name it, or else of the domain's default profile. */
export const TestIssuerRequest = Type.Object(
  {
    profiles: Type.Optional(Type.Array(NameText, { minItems: 1, maxItems: 16 })),
    outputs: Type.Optional(Type.Array(NameText, { minItems: 1, maxItems: 16 })),
    worker_issuers: Type.Optional(Type.Array(NameText, { minItems: 1, maxItems: 16 })),
    /** Instead of what they have. */
    lifetime_ms: Type.Optional(Type.Integer({ minimum: 1000, maximum: 315_360_000_000 })),
  },
  closed,
)

export const IssuerTest = Type.Object({
  passed: Type.Boolean(),
  faults: Type.Array(
    Type.Object({
      setting: Type.String({ description: 'as the issuer calls it' }),
      why: Type.String(),
      /** What to write there, or to run. */
      fix: Type.String(),
    }),
  ),
  issuer: IssuerView,
})
export type IssuerTest = Static<typeof IssuerTest>

export const OrphanView = Type.Object({
  issuer: Type.String({ description: 'name, or id where it is gone' }),
  order: Type.String(),
  /** What the certificate was ordered for: `node gpu-1`, `program gpu-1/web`, `worker w-1`. */
  subject: Type.String(),
  /** SHA-256 of the public key. */
  key: Type.String(),
  /** Null: the issuer chose it, and it was not found. */
  serial: orNull(Type.String()),
  /** `may-exist`: it is not known whether anything was signed. */
  fate: oneOf(['orphan', 'may-exist']),
  attempted_at: Type.String(),
  /** After that nothing of it can be valid. */
  until: Type.String(),
  /** Whether it is revoked there. Null: its serial is not known. */
  revocation: orNull(oneOf(['waiting', 'done', 'given-up'])),
})
export type OrphanView = Static<typeof OrphanView>

export const OrphanList = Type.Object({
  /** Oldest order first. */
  orphans: Type.Array(OrphanView),
  next: orNull(Type.String()),
})

const OrphanQuery = Type.Object(
  {
    after: Type.Optional(Type.String({ pattern: '^[0-9A-Za-z]{1,64}$' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  },
  closed,
)

const post = <const P extends string>(path: P) => ({ method: 'POST', path, access: 'platform-admin' }) as const

export const issuerApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/issuers',
    access: 'viewer',
    summary: 'The issuers of certificates: the built-in authority, and outside ones',
    answer: IssuerList,
  }),
  orphans: endpoint({
    method: 'GET',
    path: '/v1/issuer-orphans',
    access: 'viewer',
    summary: 'Certificates that were signed outside, or may have been, and that no node got; by order, page by page',
    query: OrphanQuery,
    answer: OrphanList,
  }),
  show: endpoint({
    method: 'GET',
    path: '/v1/issuers/:name',
    access: 'viewer',
    summary: 'One issuer, what it can do, and how it answers this replica',
    params: IssuerParams,
    answer: IssuerView,
  }),
  add: endpoint({
    ...post('/v1/issuers'),
    summary: 'Adds an outside issuer; once a test has passed, profiles may name it',
    body: AddIssuerRequest,
    answer: IssuerView,
  }),
  set: endpoint({
    method: 'PATCH',
    path: '/v1/issuers/:name',
    access: 'platform-admin',
    summary: 'Changes where an issuer is, how we prove ourselves to it, or its secrets',
    params: IssuerParams,
    body: ChangeIssuerRequest,
    answer: IssuerView,
  }),
  test: endpoint({
    ...post('/v1/issuers/:name/test'),
    summary: 'Signs and revokes a throw-away leaf there, and says which setting is wrong',
    params: IssuerParams,
    body: TestIssuerRequest,
    answer: IssuerTest,
  }),
  disable: endpoint({
    ...post('/v1/issuers/:name/disable'),
    summary: 'Nothing more is signed there; what is to be revoked still is',
    params: IssuerParams,
    body: ReasonRequest,
    answer: IssuerView,
  }),
  enable: endpoint({
    ...post('/v1/issuers/:name/enable'),
    summary: 'It signs again',
    params: IssuerParams,
    body: EmptyRequest,
    answer: IssuerView,
  }),
  retire: endpoint({
    ...post('/v1/issuers/:name/retire'),
    summary: 'Ends an issuer that nothing names and that has no unexpired certificate; its secrets are dropped',
    params: IssuerParams,
    body: EmptyRequest,
    answer: Type.Object({ name: Type.String() }),
  }),
}
