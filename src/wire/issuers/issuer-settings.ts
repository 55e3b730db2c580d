// What operators give of an issuer, and the access that is made of it. Secrets go in and never out; requests are closed.

import { Type, type Static } from 'typebox'
import type { IssuerAccess, OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { closed, oneOf, text } from '#wire/core/shapes.ts'

export const IssuerName = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,31}$' })

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

const RoleFor = Type.String({ pattern: '^((output|worker):)?([a-z0-9][a-z0-9-]{0,62}|\\*)$' })

export const StepCaRequest = Type.Object({ provisioner: ProvisionerName, renewal_provisioner: ProvisionerName }, closed)

/** `profile`: its name, `output:NAME` or `worker:ISSUER`; `*`, `output:*` and `worker:*` are for all others. */
const VaultRole = Type.Object({ profile: RoleFor, role: PathText }, closed)
const vaultAuths = ['approle', 'certificate', 'token'] as const
export const VaultRequest = Type.Object(
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

/** As requests and documents have it. */
export const requestOf = (access: IssuerAccess): Pick<DeclaredIssuer, 'step_ca' | 'vault'> => {
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
