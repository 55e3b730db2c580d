// A request for a new CA below the root, carried to wherever the root's key is. Its name says which kind is wanted; the
// root's side reads that and the key, and nothing else.

import { DerReader, orMalformed, tags } from '#pki/der.ts'
import { readSmallNumber } from '#pki/der-values.ts'
import { makeCsr, parseCsr } from '#pki/csr.ts'
import type { PrivateKey } from '#pki/keys.ts'
import { readName } from '#pki/name.ts'
import { fromPem } from '#pki/pem.ts'

export type RequestedRole = 'issuing' | 'domain-ca'

/** How long a path each kind leaves below itself (ruling 1). */
export const pathLenOf: Readonly<Record<RequestedRole, number>> = { issuing: 0, 'domain-ca': 1 }

const nameOf: Readonly<Record<RequestedRole, string>> = {
  issuing: 'Muster issuing CA request',
  'domain-ca': 'Muster domain CA request',
}

export const makeRequest = (key: PrivateKey, role: RequestedRole): string => makeCsr(key, nameOf[role])

export type IntermediateRequest = { readonly kind: 'request'; readonly role: RequestedRole; readonly spki: Uint8Array }

export const readRequest = (
  pem: string,
): IntermediateRequest | { readonly kind: 'malformed'; readonly why: string } => {
  const csr = parseCsr(pem)
  if (csr.kind === 'malformed') return csr
  const subject = subjectOf(pem)
  const roles: readonly RequestedRole[] = ['issuing', 'domain-ca']
  const role = roles.find((one) => subject === `CN=${nameOf[one]}`)
  if (role === undefined) return { kind: 'malformed', why: 'not a request made by muster ca request' }
  return { kind: 'request', role, spki: csr.spki }
}

const subjectOf = (pem: string): string | null => {
  const der = fromPem('CERTIFICATE REQUEST', pem)
  if (der === null) return null
  const subject = orMalformed(() => {
    const info = new DerReader(der, 0, der.length, 0).inside(tags.sequence).inside(tags.sequence)
    readSmallNumber(info)
    return readName(info)
  })
  return typeof subject === 'string' ? subject : null
}
