// What Vault answers, and what is said of it: nothing of a message is a secret, and none is longer than a few lines.

import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { printableText } from '#platform/printable-text.ts'
import { RequestFault } from '#platform/request-fault.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'
import type { IssuerAnswer } from './issuer-client.ts'

export type VaultRequest = {
  readonly method: 'GET' | 'POST' | 'LIST'
  /** Behind the version of the API. */
  readonly path: string
  readonly json?: object
  readonly mostBytes?: number
}

export type VaultReply = {
  readonly status: number
  readonly data: Readonly<Record<string, unknown>> | null
  /** Of a login. */
  readonly auth: Readonly<Record<string, unknown>> | null
  /** Its errors and warnings in one line. */
  readonly said: string
}

export type AskVault = (request: VaultRequest, token: string | null) => Promise<VaultReply>

export type VaultFaultCode =
  /** It is sealed, or not initialised. */
  | 'sealed'
  | 'login'
  /** Its rate limit. */
  | 'busy'
  /** A key in Transit. */
  | 'key'
  | 'broken'

/** Its message is fit for logs and alerts. */
export class VaultFault extends RequestFault<VaultFaultCode> {
  override readonly name = 'VaultFault'

  constructor(code: VaultFaultCode, message: string, isUndone: boolean) {
    super(message, code, isUndone)
  }
}

const longestSaid = 400

/** `secrets`: Vault repeats what it was sent in some of its messages. */
export const readReply = (
  { status, json }: Pick<IssuerAnswer, 'status' | 'json'>,
  secrets: readonly string[],
): VaultReply => {
  const body = objectOf(json) ?? {}
  const lines = [...textsOf(body['errors']), ...textsOf(body['warnings'])]
  const said = lines
    .map((line) => line.replaceAll(/\s+/g, ' ').trim())
    .filter((line) => line !== '')
    .join('; ')
  return {
    status,
    data: objectOf(body['data']),
    auth: objectOf(body['auth']),
    said: said === '' ? `status ${status}` : printableText(withoutSecrets(said, secrets).slice(0, longestSaid)),
  }
}

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  redactSecrets(secrets.reduce((all, secret) => (secret === '' ? all : all.replaceAll(secret, '[secret]')), text))

const objectOf = (value: unknown): Readonly<Record<string, unknown>> | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null

export const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []

/** Of a read of what PKI has on record; null: it is of a kind that we do not read. */
export const certificateIn = ({ data }: VaultReply): ParsedCertificate | null => {
  const pem = data?.['certificate']
  const der = typeof pem === 'string' ? fromPem('CERTIFICATE', pem) : null
  const certificate = der === null ? null : parseCertificate(der)
  return certificate?.kind === 'certificate' ? certificate : null
}

const denied = 'permission denied'

/** Of a sentence that `refusalOf` has made. */
export const isDenied = (why: string): boolean => why.startsWith(denied)

/** Names the setting that is wrong, where Vault's answer shows which. */
export const refusalOf = ({ status, said }: VaultReply, path: string, capability: string): string => {
  const mount = path.slice(0, path.lastIndexOf('/', path.lastIndexOf('/') - 1))
  if (status === 403) return `${denied}: the policy of the login has to allow ${capability} on ${path}`
  if (status === 404 && said.includes('no handler for route')) return `there is no secrets engine at ${mount}`
  return `${path}: ${said}`
}
