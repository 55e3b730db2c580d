// Issuers as operators set them up. Secrets go in and never out; times are RFC 3339. Requests are closed, answers may grow.

import { Type, type Static } from 'typebox'
import { builtIn, type IssuerAccess, type OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, EmptyRequest, NameText, oneOf, orNull, ReasonRequest, text } from '#wire/core/shapes.ts'

const issuerKinds = ['built-in', 'step-ca', 'vault'] as const

export const IssuerName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,31}$' })
const IssuerParams = Type.Object({ name: IssuerName }, closed)

const Url = Type.String({ pattern: '^https://[^@/?#\\s]+$', maxLength: 300 })
const Certificates = Type.Array(Type.String({ minLength: 1, maxLength: 32_768 }), { minItems: 1, maxItems: 8 })
/** As paths and names of Vault and step-ca are written, without what would lead to another path. */
const PathText = Type.String({
  pattern: '^(?!(.*/)?\\.{1,2}(/|$))[A-Za-z0-9_.@-]+(/[A-Za-z0-9_.@-]+)*$',
  maxLength: 128,
})
const NamedThere = Type.String({ pattern: '^[\\x20-\\x7e]+$', minLength: 1, maxLength: 128 })
/** step-ca writes them into addresses as they are. */
const ProvisionerName = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$' })

const StepCaRequest = Type.Object({ provisioner: ProvisionerName, renewal_provisioner: ProvisionerName }, closed)

/** `profile`: its name, or `*` for all others. */
const VaultRole = Type.Object({ profile: Type.Union([NameText, Type.Literal('*')]), role: PathText }, closed)
const vaultAuths = ['approle', 'certificate', 'token'] as const
const VaultRequest = Type.Object(
  {
    namespace: Type.Optional(PathText),
    /** Of the PKI engine. */
    mount: PathText,
    roles: Type.Array(VaultRole, { minItems: 1, maxItems: 64 }),
    auth: oneOf(vaultAuths),
    /** Of the auth method. */
    auth_mount: Type.Optional(PathText),
    /** With `approle`. */
    role_id: Type.Optional(NamedThere),
    /** With `certificate`: the role of the auth method. */
    auth_role: Type.Optional(NamedThere),
  },
  closed,
)
export type VaultRequest = Static<typeof VaultRequest>

export const SecretsRequest = Type.Object(
  {
    /** step-ca: the private key of the provisioner, a JWK. */
    provisioner_key: Type.Optional(text(8192)),
    /** Vault, `approle`. */
    secret_id: Type.Optional(text(1024)),
    /** Vault, `token`. */
    token: Type.Optional(text(1024)),
    /** Vault, `certificate`: PEM. */
    client_key: Type.Optional(text(16_384)),
    client_certificate: Type.Optional(text(32_768)),
  },
  closed,
)
export type SecretsRequest = Static<typeof SecretsRequest>

const settings = {
  url: Url,
  /** The only roots that its server is verified with: PEM. */
  server_roots: Certificates,
  /** The CA certificates above its leaves, a root among them: PEM. */
  roots: Certificates,
}
/** Which of these there is says what kind of issuer it is. */
const kinds = { step_ca: Type.Optional(StepCaRequest), vault: Type.Optional(VaultRequest) }

/** As documents declare it: without secrets. */
export const DeclaredIssuer = Type.Object({ name: IssuerName, ...settings, ...kinds }, closed)
export type DeclaredIssuer = Static<typeof DeclaredIssuer>

export const AddIssuerRequest = Type.Object(
  { name: IssuerName, ...settings, ...kinds, secrets: SecretsRequest },
  closed,
)
export type AddIssuerRequest = Static<typeof AddIssuerRequest>

/** What is left out stays. */
export const ChangeIssuerRequest = Type.Object(
  {
    url: Type.Optional(Url),
    server_roots: Type.Optional(Certificates),
    roots: Type.Optional(Certificates),
    ...kinds,
    /** All of them: those that are there go. */
    secrets: Type.Optional(SecretsRequest),
  },
  closed,
)
export type ChangeIssuerRequest = Static<typeof ChangeIssuerRequest>

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
  readonly status: { readonly ocsp: readonly string[]; readonly crl: readonly string[] } | null
  readonly waiting: { readonly count: number; readonly sinceMs: number | null }
  readonly health: {
    readonly asking: number
    readonly waiting: number
    readonly perSecond: number
    readonly away: { readonly sinceMs: number; readonly why: string } | null
    readonly answeredAtMs: number | null
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
    revocations_waiting: around.waiting.count,
    revocations_waiting_since: isoTimeOrNull(around.waiting.sinceMs),
    health: {
      asking: around.health.asking,
      waiting: around.health.waiting,
      answers_per_second: Math.round(around.health.perSecond * 10) / 10,
      answered_at: isoTimeOrNull(around.health.answeredAtMs),
      away_since: isoTimeOrNull(away?.sinceMs ?? null),
      away_because: away?.why ?? null,
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
  ...{ status: null, profiles: [...profiles], revocations_waiting: 0, revocations_waiting_since: null },
  ...{ health: null, added_at: null, added_by: null },
})

const shownAccess = (access: IssuerAccess): Pick<IssuerView, 'step_ca' | 'vault'> => ({
  step_ca: null,
  vault: null,
  ...requestOf(access),
})

/** As requests and documents have it. */
const requestOf = (access: IssuerAccess): Pick<DeclaredIssuer, 'step_ca' | 'vault'> => {
  switch (access.kind) {
    case 'step-ca':
      return { step_ca: { provisioner: access.provisioner, renewal_provisioner: access.renewalProvisioner } }
    case 'vault': {
      const { namespace, mount, roles, login } = access
      return {
        vault: {
          ...(namespace !== null && { namespace }),
          mount,
          roles: Object.entries(roles).map(([profile, role]) => ({ profile, role })),
          auth: login.kind,
          ...(login.kind !== 'token' && { auth_mount: login.mount }),
          ...(login.kind === 'approle' && { role_id: login.roleId }),
          ...(login.kind === 'certificate' && { auth_role: login.role }),
        },
      }
    }
  }
}

/** `roots`: PEM, of all that it brought. */
export const declaredIssuer = (issuer: OutsideIssuer, roots: readonly string[]): DeclaredIssuer => ({
  ...{ name: issuer.name, url: issuer.url, server_roots: [...issuer.serverRoots] },
  roots: [...roots],
  ...requestOf(issuer.access),
})

/** Where Vault has its methods if nobody says otherwise. */
const usualMounts = { approle: 'approle', certificate: 'cert' } as const

/** A text: what is wrong, with the field at fault first. */
export type AccessProblem = { readonly field: string; readonly why: string }

export const accessOf = ({
  step_ca: stepCa,
  vault,
}: Pick<ChangeIssuerRequest, 'step_ca' | 'vault'>): IssuerAccess | AccessProblem => {
  if (stepCa !== undefined && vault !== undefined) return { field: 'vault', why: 'either step_ca or vault' }
  if (stepCa !== undefined)
    return {
      ...{ kind: 'step-ca', provisioner: stepCa.provisioner, renewalProvisioner: stepCa.renewal_provisioner },
    }
  if (vault === undefined) return { field: 'step_ca', why: 'either step_ca or vault has to be there' }
  const roles = Object.fromEntries(vault.roles.map(({ profile, role }) => [profile, role]))
  if (Object.keys(roles).length !== vault.roles.length) return { field: 'vault.roles', why: 'a profile is there twice' }
  const login = loginOf(vault)
  if ('why' in login) return login
  return { kind: 'vault', namespace: vault.namespace ?? null, mount: vault.mount, roles, login }
}

type VaultLogin = Extract<IssuerAccess, { kind: 'vault' }>['login']

const loginOf = (vault: VaultRequest): VaultLogin | AccessProblem => {
  const { auth, auth_mount: mount, role_id: roleId, auth_role: role } = vault
  const without = (field: 'role_id' | 'auth_role' | 'auth_mount'): AccessProblem | null =>
    vault[field] === undefined ? null : { field: `vault.${field}`, why: `it does not go with auth ${auth}` }
  switch (auth) {
    case 'approle':
      if (roleId === undefined) return { field: 'vault.role_id', why: 'auth approle needs it' }
      return without('auth_role') ?? { kind: 'approle', mount: mount ?? usualMounts.approle, roleId }
    case 'certificate':
      if (role === undefined) return { field: 'vault.auth_role', why: 'auth certificate needs it' }
      return without('role_id') ?? { kind: 'certificate', mount: mount ?? usualMounts.certificate, role }
    case 'token':
      return without('role_id') ?? without('auth_role') ?? without('auth_mount') ?? { kind: 'token' }
  }
}

/** Which secrets each way of proving ourselves takes: all of them, and no other. */
export const secretsNeeded = (access: IssuerAccess): readonly (keyof SecretsRequest)[] => {
  if (access.kind === 'step-ca') return ['provisioner_key']
  switch (access.login.kind) {
    case 'approle':
      return ['secret_id']
    case 'certificate':
      return ['client_key', 'client_certificate']
    case 'token':
      return ['token']
  }
}

/** Those that go to the server as they are, and not only what was made with them. */
export const secretsShown = (access: IssuerAccess): readonly (keyof SecretsRequest)[] =>
  access.kind === 'vault' && access.login.kind !== 'certificate' ? secretsNeeded(access) : []

export const IssuerList = Type.Object({ issuers: Type.Array(IssuerView) })

/** Leaves like those of these profiles; left out: of those that name it, or else of the domain's default. */
export const TestIssuerRequest = Type.Object(
  {
    profiles: Type.Optional(Type.Array(NameText, { minItems: 1, maxItems: 16 })),
    /** Instead of what the profiles have. */
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
