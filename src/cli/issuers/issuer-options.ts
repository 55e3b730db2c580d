// The options that say where an outside issuer is and how we prove ourselves to it, and the request that they make.

import type { Command } from 'commander'
import { readText } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { collect } from '#cli/kit/verb.ts'
import { allFromPem, toPem } from '#pki/pem.ts'
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
      'Vault: the role of a profile, of output:NAME or of worker:ISSUER; *=ROLE for all other profiles; may be repeated',
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

/** What was given, and nothing else. */
export const requestFrom = async (cli: Cli, options: IssuerOptions): Promise<ChangeIssuerRequest> => {
  const stepCa = stepCaFrom(options)
  const vault = vaultFrom(options)
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

const stepCaFrom = ({
  provisioner,
  renewalProvisioner,
}: IssuerOptions): NonNullable<ChangeIssuerRequest['step_ca']> | null => {
  if (provisioner === undefined && renewalProvisioner === undefined) return null
  if (provisioner === undefined || renewalProvisioner === undefined)
    throw usageFailure('--provisioner and --renewal-provisioner go together.')
  return { provisioner, renewal_provisioner: renewalProvisioner }
}

const vaultFrom = (options: IssuerOptions): VaultRequest | null => {
  const { mount, role, auth, namespace, authMount, roleId, authRole } = options
  const given = [mount, role, auth, namespace, authMount, roleId, authRole]
  if (given.every((one) => one === undefined)) return null
  if (mount === undefined || role === undefined || auth === undefined)
    throw usageFailure('A Vault takes --mount, --role and --auth together.')
  if (!['approle', 'certificate', 'token'].includes(auth))
    throw usageFailure('--auth is approle, certificate or token.')
  return {
    ...{ mount, auth, roles: role.map(roleIn) },
    ...(namespace !== undefined && { namespace }),
    ...(authMount !== undefined && { auth_mount: authMount }),
    ...(roleId !== undefined && { role_id: roleId }),
    ...(authRole !== undefined && { auth_role: authRole }),
  }
}

const roleIn = (text: string): VaultRequest['roles'][number] => {
  const [, profile, role] = /^([^=]+)=(.+)$/.exec(text) ?? []
  if (profile === undefined || role === undefined) throw usageFailure('--role takes PROFILE=ROLE, or *=ROLE.')
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
