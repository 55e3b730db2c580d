// What is asked of Vault's PKI: a signature by the role of a profile, under a serial that Vault chooses, and a revocation by serial.

import { roleFor } from '#domain/issuers/named-issuer.ts'
import { colonSerial } from '#domain/issuers/serial.ts'
import { toPem } from '#pki/pem.ts'
import type { Clock } from '#platform/clock.ts'
import { RequestFault } from '#platform/request-fault.ts'
import { AnotherSerial, type Attempt, type Returned, type Unsent, type Unsigned } from './outside-signer.ts'
import { certificateIn, refusalOf, textsOf, VaultFault, type VaultReply } from '#plane/outside/vault-reply.ts'
import type { Vault } from '#plane/outside/vault-server.ts'

export type VaultPki = {
  readonly vault: Pick<Vault, 'ask' | 'aheadMs'>
  readonly clock: Pick<Clock, 'nowMs'>
  /** Of the secrets engine: `pki`. */
  readonly mount: string
  /** By what they are for (domain/issuers/named-issuer.ts). */
  readonly roles: Readonly<Record<string, string>>
}

/** Vault dates by its own clock, which may be ahead of ours. */
const lessThanOrderedMs = 60_000

export const signThere = async (
  pki: VaultPki,
  { order, kind, request }: Pick<Attempt, 'order' | 'kind' | 'request'>,
  signal: AbortSignal,
): Promise<Returned | Unsent | Unsigned> => {
  const role = roleFor(pki.roles, kind)
  if (role === null) return { kind: 'unsigned', why: `no role of Vault is named for ${kind}` } as const
  const leftMs = order.issuedAtMs + order.lifetimeMs - pki.clock.nowMs()
  // Short lives are for tests: a minute would be too much of them.
  const ttl = Math.floor((leftMs - Math.min(lessThanOrderedMs, order.lifetimeMs / 20)) / 1000)
  if (ttl < 1) return { kind: 'unsigned', why: 'what was ordered has ended before it was asked for' } as const
  const path = `${pki.mount}/sign/${role}`
  const json = {
    csr: toPem('CERTIFICATE REQUEST', request),
    common_name: order.subject.cn,
    exclude_cn_from_sans: true,
    uri_sans: order.uriSans,
    ip_sans: order.ipSans,
    ...(order.dnsSans.length === 0 ? {} : { alt_names: order.dnsSans.join(',') }),
    ttl: `${ttl}s`,
    format: 'der',
  }
  let reply: VaultReply
  try {
    reply = await pki.vault.ask({ method: 'POST', path, json }, signal)
  } catch (error) {
    if (wasNothingDone(error)) return { kind: 'unsent', why: error.message } as const
    throw error
  }
  if (reply.status === 200) return chainIn(reply)
  return { kind: 'unsigned', why: refusalOf(reply, path, 'update') } as const
}

const wasNothingDone = (error: unknown): error is RequestFault => error instanceof RequestFault && error.isUndone

const mostInChain = 8
const longestCertificate = 32 * 1024

const chainIn = ({ data }: VaultReply): Returned => {
  const texts = [data?.['certificate'], ...textsOf(data?.['ca_chain'])]
  const last = texts.length === 1 ? [...texts, data?.['issuing_ca']] : texts
  if (last.length > mostInChain || !last.every(isBase64))
    throw new VaultFault('broken', 'Vault has answered a request for a certificate with something that is none', false)
  return { kind: 'returned', chain: last.map((text) => new Uint8Array(Buffer.from(text, 'base64'))) }
}

const isBase64 = (text: unknown): text is string =>
  typeof text === 'string' && text.length <= longestCertificate && /^[A-Za-z0-9+/]+={0,2}$/.test(text)

export const revokeThere = async (
  { vault, mount }: Pick<VaultPki, 'vault' | 'mount'>,
  serial: string,
  signal: AbortSignal,
): Promise<'revoked' | 'unknown there'> => {
  const json = { serial_number: colonSerial(serial) }
  const reply = await vault.ask({ method: 'POST', path: `${mount}/revoke`, json }, signal)
  if (reply.status !== 200 && reply.status !== 400)
    throw new VaultFault('broken', refusalOf(reply, `${mount}/revoke`, 'update'), true)
  // Vault answers 200 also where it did nothing, and without the serial. What it has on record counts.
  const path = `${mount}/cert/${colonSerial(serial)}`
  const record = await vault.ask({ method: 'GET', path }, signal)
  if (record.status === 404) {
    if (reply.status === 400) return 'unknown there'
    throw new VaultFault('broken', `Vault does not know the certificate ${serial} that it says it revoked`, false)
  }
  if (record.status !== 200) throw new VaultFault('broken', refusalOf(record, path, 'read'), false)
  const kept = certificateIn(record)?.serial
  if (kept !== serial) throw new AnotherSerial(serial, kept ?? 'none')
  const revokedAt = record.data?.['revocation_time']
  if (typeof revokedAt === 'number' && revokedAt > 0) return 'revoked'
  throw new VaultFault('broken', `Vault has not revoked ${serial}: ${reply.said}`, false)
}
