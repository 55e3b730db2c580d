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
import { keyId, type PrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { goOn, type MadeWith, type Signer } from '#pki/signer.ts'
import type { Random } from '#platform/random.ts'
import { issuerRow, newSerial, type CaSigner, type MadeCa } from './ca-signer.ts'
import { keyHere, type NewKey } from './new-key.ts'

export type Making = {
  readonly domain: string
  readonly custody: IssuerRow['custody']
  readonly lifetimeMs: number
  readonly nowMs: number
  readonly random: Random
}

type MakingRoot = Making & { readonly pathLen: 1 | 2 }

export const makeRoot = (making: MakingRoot): MadeCa<PrivateKey> => makeRootWith(keyHere(), making)

/** With a key that may be in a token. */
export const makeRootWith = <S extends Signer>(made: NewKey<S>, making: MakingRoot): MadeWith<S, MadeCa<S>> => {
  const { spki } = made.key
  const spec = rootSpec({ ...requestFor(spki, making), pathLen: making.pathLen })
  return signerFor(spec, made, made.key, { role: 'root', custody: making.custody, parent: keyId(spki) })
}

export const makeRecoveryRoot = (making: Making): MadeCa<PrivateKey> => {
  const made = keyHere()
  const { spki } = made.key
  const spec = recoveryRootSpec(requestFor(spki, making))
  return signerFor(spec, made, made.key, { role: 'recovery', custody: making.custody, parent: keyId(spki) })
}

export const makeProgramsRoot = (making: Making): MadeCa<PrivateKey> => {
  const made = keyHere()
  const { spki } = made.key
  const spec = programsRootSpec(requestFor(spki, making))
  return signerFor(spec, made, made.key, { role: 'programs-root', custody: making.custody, parent: keyId(spki) })
}

export const makeProgramsIssuer = <S extends Signer>(above: CaSigner<S>, making: Making): MadeWith<S, MadeCa> => {
  const made = keyHere()
  const spec = programsIssuingSpec(requestFor(made.key.spki, making), above.certificate)
  const as = { role: 'programs-issuing', custody: making.custody, parent: above.row.id } as const
  return signerFor(spec, made, above.key, as)
}

export const makeWorkersIssuer = <S extends Signer>(above: CaSigner<S>, making: Making): MadeWith<S, MadeCa> => {
  const made = keyHere()
  const spec = workersIssuingSpec(requestFor(made.key.spki, making), above.certificate)
  return signerFor(spec, made, above.key, { role: 'workers-issuing', custody: making.custody, parent: above.row.id })
}

/** Never outlives the CA above it. */
export const makeIntermediate = <S extends Signer>(
  role: 'domain-ca' | 'issuing',
  above: CaSigner<S>,
  making: Making,
): MadeWith<S, MadeCa<PrivateKey>> => makeIntermediateWith(keyHere(), role, above, making)

/** With a key that may be in a token. */
export const makeIntermediateWith = <K extends Signer, S extends Signer>(
  made: NewKey<K>,
  role: 'domain-ca' | 'issuing',
  above: CaSigner<S>,
  making: Making,
): MadeWith<S, MadeCa<K>> => {
  const specOf = role === 'domain-ca' ? domainCaSpec : issuingSpec
  const spec = specOf(requestFor(made.key.spki, making), above.certificate)
  return signerFor(spec, made, above.key, { role, custody: making.custody, parent: above.row.id })
}

const requestFor = (spki: Uint8Array, { domain, lifetimeMs, nowMs, random }: Making): AuthorityRequest => ({
  domain,
  spki,
  serial: newSerial(random),
  nowMs,
  lifetimeMs,
})

const signerFor = <K extends Signer, S extends Signer>(
  spec: CertificateSpec,
  { key, kept }: NewKey<K>,
  signedBy: S,
  as: Pick<IssuerRow, 'role' | 'custody' | 'parent'>,
): MadeWith<S, MadeCa<K>> => {
  const made = (der: Uint8Array): MadeCa<K> => {
    const certificate = parseCertificate(der)
    if (certificate.kind === 'malformed')
      throw new Error(`a CA certificate of our own making is malformed: ${certificate.why}`)
    return { row: issuerRow(certificate, as), certificate, key, kept }
  }
  return goOn<Uint8Array, MadeCa<K>>(buildCertificate<Signer>(spec, signedBy), made) as MadeWith<S, MadeCa<K>>
}
