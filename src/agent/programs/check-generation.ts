// Whether what is to be written for a program is what it claims to be. The agent asks before it keeps what a plane has sent, and
// the helper before it writes what an agent has sent: it trusts neither. All functions here are pure.

import { isFromFuture } from '#domain/core/certificate.ts'
import { programUri } from '#domain/core/subject-uri.ts'
import { sameBytes } from '#platform/bytes.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import { isListSignedBy, parseCrl, type ParsedList } from '#pki/parse-crl.ts'
import type { ParsedCertificate } from '#pki/parse-certificate.ts'
import { allFromPem, fromPem } from '#pki/pem.ts'
import { verifyIssuedChain } from '#pki/verify-chain.ts'

export type ProgramOf = { readonly domain: string; readonly node: string; readonly output: string }

export type Unusable = { readonly kind: 'unusable'; readonly why: string }

const unusable = (why: string): Unusable => ({ kind: 'unusable', why })

export type LeafFacts = {
  readonly keyPem: string
  readonly chainPem: string
  /** The programs roots that are trusted here, DER. */
  readonly roots: readonly Uint8Array[]
  readonly nowMs: number
}

/** `authorities`: above the leaf, the issuing CA first and the root last. */
export type CheckedLeaf = {
  readonly kind: 'leaf'
  readonly leaf: ParsedCertificate
  readonly authorities: readonly ParsedCertificate[]
}

export const checkLeaf = ({ keyPem, chainPem, roots, nowMs }: LeafFacts, of: ProgramOf): CheckedLeaf | Unusable => {
  const chain = allFromPem('CERTIFICATE', chainPem)
  if (chain === null) return unusable('no certificate chain')
  const verdict = verifyIssuedChain({ chain, roots, nowMs })
  if (verdict.kind === 'untrusted') return unusable(verdict.why)
  const [leaf, ...authorities] = verdict.path
  if (leaf === undefined || leaf.ca) return unusable('the certificate is that of an authority')
  const spki = publicKeyOf(keyPem)
  if (spki === null) return unusable('the private key cannot be read')
  if (!sameBytes(leaf.spki, spki)) return unusable('the certificate is for another key')
  const [uri, ...others] = leaf.uris
  const expected = programUri(of.domain, of.node, of.output)
  if (uri !== expected || others.length > 0)
    return unusable(`the certificate is for ${leaf.uris.join(', ') || 'no program'}, not for ${expected}`)
  return { kind: 'leaf', leaf, authorities }
}

const publicKeyOf = (keyPem: string): Uint8Array | null => {
  try {
    return loadPrivateKey(keyPem).spki
  } catch {
    return null
  }
}

/**
 * Made by a clock that was ahead. No program accepts it, and its number would keep right ones out until that time has come: it is
 * not taken, and holds no later one up.
 */
export const isListAhead = ({ thisUpdateMs }: Pick<ParsedList, 'thisUpdateMs'>, nowMs: number): boolean =>
  isFromFuture(thisUpdateMs, nowMs)

/** A list that one of these authorities has signed. Whether it has ended is not asked: an old one is better than none. */
export const checkList = (
  pem: string,
  authorities: readonly ParsedCertificate[],
  nowMs: number,
): { readonly kind: 'list'; readonly list: ParsedList } | Unusable => {
  const der = fromPem('X509 CRL', pem)
  if (der === null) return unusable('not one PEM block X509 CRL')
  const list = parseCrl(der)
  if (list.kind === 'malformed') return unusable(`a revocation list is malformed (${list.why})`)
  if (isListAhead(list, nowMs)) return unusable(`a revocation list is from the future (${list.authorityKeyId})`)
  return authorities.some((authority) => isListSignedBy(list, authority))
    ? { kind: 'list', list }
    : unusable(`a revocation list is not signed by an authority above the leaf (${list.authorityKeyId})`)
}

/** An authority of the chains of other programs: it has to hang below the roots like those of this one. */
export const checkAuthority = (
  der: Uint8Array,
  roots: readonly Uint8Array[],
  nowMs: number,
): { readonly kind: 'authority'; readonly authority: ParsedCertificate } | Unusable => {
  const verdict = verifyIssuedChain({ chain: [der], roots, nowMs })
  if (verdict.kind === 'untrusted') return unusable(`an authority: ${verdict.why}`)
  const [authority] = verdict.path
  return authority?.ca === true ? { kind: 'authority', authority } : unusable('a certificate that is no authority')
}
