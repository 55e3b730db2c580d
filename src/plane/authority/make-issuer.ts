// Makes new certificate authorities: a key, a certificate, and its row. Nothing is kept or committed here.

import type { IssuerRow } from '#domain/ca/issuer.ts'
import {
  domainCaSpec,
  issuingSpec,
  programsIssuingSpec,
  programsRootSpec,
  recoveryRootSpec,
  rootSpec,
  workersIssuingSpec,
  type AuthorityRequest,
} from '#pki/authority-certificates.ts'
import { buildCertificate, type CertificateSpec } from '#pki/certificate.ts'
import { generateKey, keyId, type PrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { goOn, type MadeWith, type Signer } from '#pki/signer.ts'
import type { Random } from '#platform/random.ts'
import { issuerRow, newSerial, type CaSigner, type MadeCa } from './ca-signer.ts'

export type Making = {
  readonly domain: string
  readonly custody: IssuerRow['custody']
  readonly lifetimeMs: number
  readonly nowMs: number
  readonly random: Random
}

export const makeRoot = (making: Making & { readonly pathLen: 1 | 2 }): MadeCa => {
  const key = generateKey('p256')
  const spec = rootSpec({ ...requestFor(key, making), pathLen: making.pathLen })
  return signerFor(spec, key, key, { role: 'root', custody: making.custody, parent: keyId(key.spki) })
}

export const makeRecoveryRoot = (making: Making): MadeCa => {
  const key = generateKey('p256')
  const spec = recoveryRootSpec(requestFor(key, making))
  return signerFor(spec, key, key, { role: 'recovery', custody: making.custody, parent: keyId(key.spki) })
}

export const makeProgramsRoot = (making: Making): MadeCa => {
  const key = generateKey('p256')
  const spec = programsRootSpec(requestFor(key, making))
  return signerFor(spec, key, key, { role: 'programs-root', custody: making.custody, parent: keyId(key.spki) })
}

export const makeProgramsIssuer = <S extends Signer>(above: CaSigner<S>, making: Making): MadeWith<S, MadeCa> => {
  const key = generateKey('p256')
  const spec = programsIssuingSpec(requestFor(key, making), above.certificate)
  const as = { role: 'programs-issuing', custody: making.custody, parent: above.row.id } as const
  return signerFor(spec, key, above.key, as)
}

export const makeWorkersIssuer = <S extends Signer>(above: CaSigner<S>, making: Making): MadeWith<S, MadeCa> => {
  const key = generateKey('p256')
  const spec = workersIssuingSpec(requestFor(key, making), above.certificate)
  return signerFor(spec, key, above.key, { role: 'workers-issuing', custody: making.custody, parent: above.row.id })
}

/** Never outlives the CA above it. */
export const makeIntermediate = <S extends Signer>(
  role: 'domain-ca' | 'issuing',
  above: CaSigner<S>,
  making: Making,
): MadeWith<S, MadeCa> => {
  const key = generateKey('p256')
  const specOf = role === 'domain-ca' ? domainCaSpec : issuingSpec
  const spec = specOf(requestFor(key, making), above.certificate)
  return signerFor(spec, key, above.key, { role, custody: making.custody, parent: above.row.id })
}

const requestFor = (key: PrivateKey, { domain, lifetimeMs, nowMs, random }: Making): AuthorityRequest => ({
  domain,
  spki: key.spki,
  serial: newSerial(random),
  nowMs,
  lifetimeMs,
})

const signerFor = <S extends Signer>(
  spec: CertificateSpec,
  key: PrivateKey,
  signedBy: S,
  as: Pick<IssuerRow, 'role' | 'custody' | 'parent'>,
): MadeWith<S, MadeCa> => {
  const made = (der: Uint8Array): MadeCa => {
    const certificate = parseCertificate(der)
    if (certificate.kind === 'malformed')
      throw new Error(`a CA certificate of our own making is malformed: ${certificate.why}`)
    return { row: issuerRow(certificate, as), certificate, key }
  }
  return goOn<Uint8Array, MadeCa>(buildCertificate<Signer>(spec, signedBy), made) as MadeWith<S, MadeCa>
}
