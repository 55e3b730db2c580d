// The options that say where an outside issuer is and how we prove ourselves to it, and the request that they make.

import type { Command } from 'commander'
import { readText } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { collect } from '#cli/kit/verb.ts'
import { allFromPem, toPem } from '#pki/pem.ts'
import type { IssuerView } from '#wire/issuers/issuer-api.ts'
import type { ChangeIssuerRequest, SecretsRequest, VaultRequest } from '#wire/issuers/issuer-settings.ts'
import { readSecret, sourceForms } from './secret-source.ts'

export type IssuerOptions = GlobalOptions & {
  readonly at?: string
  readonly serverCa?: string
  readonly roots?: string
  readonly provisioner?: string
  readonly renewalProvisioner?: string
  readonly provisionerKey?: string
  readonly namespace?: string
  readonly mount?: string
  readonly role?: readonly string[]
  readonly auth?: VaultRequest['auth']
  readonly authMount?: string
  readonly roleId?: string
  readonly authRole?: string
  readonly secretId?: string
  readonly token?: string
  readonly clientKey?: string
  readonly clientCertificate?: string
}

export const withIssuerOptions = (command: Command): Command =>
  command
    .option('--at <url>', 'where it is: https://HOST[:PORT]')
    .option('--server-ca <file>', 'the roots of its TLS server, PEM; no others are trusted')
    .option(
      '--roots <file>',
      'the CA certificates above its leaves, PEM: the root, and issuing CAs that it does not send',
    )
    .option('--provisioner <name>', 'step-ca: the JWK provisioner, for enrollment and recovery')
    .option('--renewal-provisioner <name>', 'step-ca: the X5C provisioner, for renewal')
    .option('--provisioner-key <source>', `step-ca: the private key of the JWK provisioner, a JWK: ${sourceForms}`)
    .option('--mount <path>', 'Vault: the PKI engine')
    .option(
      '--role <profile=role>',
      'Vault: the role of a profile, of output:NAME or of worker:ISSUER; *=ROLE for all other profiles; may be repeated. With `issuer set` the other roles stay, and PROFILE= takes one away',
      collect,
    )
    .option('--namespace <path>', 'Vault: the namespace')
    .option('--auth <method>', 'Vault: approle, certificate or token')
    .option('--auth-mount <path>', 'Vault: the auth method, where it is not at approle or cert')
    .option('--role-id <id>', 'Vault, approle')
    .option('--secret-id <source>', `Vault, approle: ${sourceForms}`)
    .option('--auth-role <name>', 'Vault, certificate: the role of the auth method')
    .option('--client-key <source>', `Vault, certificate: PEM: ${sourceForms}`)
    .option('--client-certificate <file>', 'Vault, certificate: PEM')
    .option('--token <source>', `Vault, token: ${sourceForms}`)

const longestFile = 262_144

/** How the plane proves itself at an issuer that is there. */
export type Access = Pick<IssuerView, 'step_ca' | 'vault'>

/** What was given. A part of the access takes the rest of it from what is there; `now`: asked for then alone, null for a new issuer. */
export const requestFrom = async (
  cli: Cli,
  options: IssuerOptions,
  now: (() => Promise<Access>) | null = null,
): Promise<ChangeIssuerRequest> => {
  const isAccess = accessOptions.some((name) => options[name] !== undefined)
  const access = isAccess && now !== null ? await now() : null
  const stepCa = stepCaFrom(options, access?.step_ca ?? null)
  const vault = vaultFrom(options, access?.vault ?? null)
  const secrets = await secretsFrom(cli, options)
  return {
    ...(options.at !== undefined && { url: options.at }),
    ...(options.serverCa !== undefined && { server_roots: await certificatesIn(cli, options.serverCa) }),
    ...(options.roots !== undefined && { roots: await certificatesIn(cli, options.roots) }),
    ...(stepCa !== null && { step_ca: stepCa }),
    ...(vault !== null && { vault }),
    ...(Object.keys(secrets).length > 0 && { secrets }),
  }
}

/** One PEM block each, without what files have beside them. */
const certificatesIn = async (cli: Cli, file: string): Promise<string[]> => {
  const found = allFromPem('CERTIFICATE', await readText(cli, file, longestFile))
  if (found === null || found.length === 0) throw usageFailure(`${file} has no certificates in PEM.`)
  return found.map((der) => toPem('CERTIFICATE', der))
}

const stepCaOptions = ['provisioner', 'renewalProvisioner'] as const
const vaultOptions = ['mount', 'role', 'auth', 'namespace', 'authMount', 'roleId', 'authRole'] as const
const accessOptions = [...stepCaOptions, ...vaultOptions]

const usage = 'muster issuer add --help'

const stepCaFrom = (options: IssuerOptions, now: Access['step_ca']): Access['step_ca'] => {
  if (stepCaOptions.every((name) => options[name] === undefined)) return null
  const provisioner = options.provisioner ?? now?.provisioner
  const renewalProvisioner = options.renewalProvisioner ?? now?.renewal_provisioner
  if (provisioner === undefined || renewalProvisioner === undefined)
    throw usageFailure('A step-ca takes --provisioner and --renewal-provisioner together.', usage)
  return { provisioner, renewal_provisioner: renewalProvisioner }
}

const vaultFrom = (options: IssuerOptions, now: VaultRequest | null): VaultRequest | null => {
  if (vaultOptions.every((name) => options[name] === undefined)) return null
  const auth = options.auth ?? now?.auth
  const mount = options.mount ?? now?.mount
  const roles = changedRoles(now?.roles ?? [], options.role ?? [])
  if (mount === undefined || roles.length === 0 || auth === undefined)
    throw usageFailure('A Vault takes --mount, --role and --auth together.', usage)
  if (!['approle', 'certificate', 'token'].includes(auth))
    throw usageFailure('--auth is approle, certificate or token.', usage)
  // Of another way to log in nothing stays.
  const login = now?.auth === auth ? now : null
  const namespace = options.namespace ?? now?.namespace
  const authMount = options.authMount ?? login?.auth_mount
  const roleId = options.roleId ?? login?.role_id
  const authRole = options.authRole ?? login?.auth_role
  return {
    ...{ mount, auth, roles: [...roles] },
    ...(namespace !== undefined && { namespace }),
    ...(authMount !== undefined && { auth_mount: authMount }),
    ...(roleId !== undefined && { role_id: roleId }),
    ...(authRole !== undefined && { auth_role: authRole }),
  }
}

type Roles = VaultRequest['roles']

/** A role that is left out stays: to drop it would end the renewals of its profile. An empty one is taken away. */
const changedRoles = (now: Roles, given: readonly string[]): Roles => {
  const roles = given.map(roleIn)
  const others = now.filter(({ profile }) => !roles.some((one) => one.profile === profile))
  return [...others, ...roles].filter(({ role }) => role !== '')
}

const roleIn = (text: string): Roles[number] => {
  const [, profile, role] = /^([^=]+)=(.*)$/.exec(text) ?? []
  if (profile === undefined || role === undefined)
    throw usageFailure('--role takes PROFILE=ROLE, output:NAME=ROLE, worker:ISSUER=ROLE, or * for all others.', usage)
  return { profile, role }
}

const secretsFrom = async (cli: Cli, options: IssuerOptions): Promise<SecretsRequest> => {
  const { provisionerKey, secretId, token, clientKey, clientCertificate } = options
  return {
    ...(provisionerKey !== undefined && {
      provisioner_key: await readSecret(cli, '--provisioner-key', provisionerKey),
    }),
    ...(secretId !== undefined && { secret_id: await readSecret(cli, '--secret-id', secretId) }),
    ...(token !== undefined && { token: await readSecret(cli, '--token', token) }),
    ...(clientKey !== undefined && { client_key: await readSecret(cli, '--client-key', clientKey) }),
    ...(clientCertificate !== undefined && { client_certificate: await readText(cli, clientCertificate, longestFile) }),
  }
}
