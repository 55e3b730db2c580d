// The agent's own check of the server, before it trusts any root (ruling 16). Stricter than Node's, and the
// only place where Node's is replaced. Validity comes last: `expired` or `not-yet-valid` means that the clock is all
// that is wrong.

import { isForHost } from './host-name.ts'
import { isSignedBy, type ParsedCertificate, parseCertificate } from './parse-certificate.ts'

export type ServerChain = {
  /** DER, leaf first; each is issued by the next. The root may be the last. */
  readonly chain: readonly Uint8Array[]
  /** The fingerprint of the root, which the chain must then include; or the roots already trusted. */
  readonly anchor: { readonly rootFingerprint: string } | { readonly roots: readonly Uint8Array[] }
  /** Null: any. Then the mark alone says whose it is, and has to be there. */
  readonly host: string | null
  readonly mark: ExpectedMark
  readonly nowMs: number
  /** Subject key identifiers of authorities that are not trusted, whichever root signed them; none by default. */
  readonly withdrawn?: readonly string[]
  /** Certificates, the root included; 5 unless given. */
  readonly maxLength?: number
}

/** The URI name that the leaf has to have (ruling 20). A leaf with any other is refused. */
export type ExpectedMark = {
  readonly uri: string
  /** False: a leaf without any URI name is accepted, as a plane of a release before 0.4.0 has one. */
  readonly required: boolean
}

export type ChainVerdict =
  { readonly kind: 'trusted'; readonly root: Uint8Array; readonly leaf: ParsedCertificate } | Untrusted

export type ChainProblem =
  | 'malformed'
  | 'no-root'
  | 'bad-signature'
  | 'not-a-ca'
  | 'path-length'
  /** The leaf is for another host; all else about it is right but for its dates, which were not looked at. */
  | 'wrong-name'
  /** The leaf is of a node or a program, or lacks the mark of the plane. */
  | 'wrong-mark'
  | 'wrong-usage'
  | 'not-yet-valid'
  | 'expired'
  /** A certificate names another issuer than the one that follows it. */
  | 'name-mismatch'
  | 'critical-extension'
  | 'too-long'
  /** An authority of the chain has been withdrawn. */
  | 'withdrawn'

export type Untrusted = {
  readonly kind: 'untrusted'
  readonly code: ChainProblem
  readonly why: string
  /** For `expired` and `not-yet-valid`: when all of the chain is valid at once. Null if never, and for other codes. */
  readonly validity: { readonly notBeforeMs: number; readonly notAfterMs: number } | null
}

const usualMaxLength = 5

export const verifyServerChain = (given: ServerChain): ChainVerdict => {
  const limit = given.maxLength ?? usualMaxLength
  if (given.chain.length > limit) return no('too-long', `${given.chain.length} certificates, at most ${limit} allowed`)
  const parsed = parseAll(given.chain)
  if ('code' in parsed) return parsed
  const path = upToRoot(parsed, given.anchor)
  if ('code' in path) return path
  const leaf = path[0]
  const root = path.at(-1)
  if (leaf === undefined || root === undefined) return no('malformed', 'no certificate')
  return (
    checkLinks(path) ??
    checkWithdrawn(path, given.withdrawn ?? []) ??
    checkLeaf(leaf) ??
    checkMark(leaf, given) ??
    checkHost(leaf, given.host) ??
    checkValidity(path, given.nowMs) ?? { kind: 'trusted', root: root.der, leaf }
  )
}

export type IssuedChain = Pick<ServerChain, 'chain' | 'nowMs' | 'maxLength'> & {
  readonly roots: readonly Uint8Array[]
  /** What authorities that are limited to some purposes have to be for; for servers unless given. */
  readonly purposes?: readonly Purpose[]
}

export type Purpose = 'clientAuth' | 'serverAuth'

/** The chain of any leaf, without a word about what the leaf is for. `path`: leaf first, the root last. */
export const verifyIssuedChain = (
  given: IssuedChain,
): { readonly kind: 'trusted'; readonly path: readonly ParsedCertificate[] } | Untrusted => {
  const limit = given.maxLength ?? usualMaxLength
  if (given.chain.length > limit) return no('too-long', `${given.chain.length} certificates, at most ${limit} allowed`)
  const parsed = parseAll(given.chain)
  if ('code' in parsed) return parsed
  const path = upToRoot(parsed, { roots: given.roots })
  if ('code' in path) return path
  return checkLinks(path, given.purposes) ?? checkValidity(path, given.nowMs) ?? { kind: 'trusted', path }
}

const no = (code: ChainProblem, why: string): Untrusted => ({ kind: 'untrusted', code, why, validity: null })

const parseAll = (chain: readonly Uint8Array[]): ParsedCertificate[] | Untrusted => {
  const parsed: ParsedCertificate[] = []
  for (const [place, der] of chain.entries()) {
    const certificate = parseCertificate(der)
    if (certificate.kind === 'malformed') return no('malformed', `certificate ${place + 1}: ${certificate.why}`)
    if (certificate.unknownCritical.length > 0) {
      return no(
        'critical-extension',
        `${certificate.subject}: unknown critical extension ${certificate.unknownCritical[0]}`,
      )
    }
    parsed.push(certificate)
  }
  return parsed
}

/** The chain with the trusted root as its last. A leaf is never its own root. */
const upToRoot = (chain: ParsedCertificate[], anchor: ServerChain['anchor']): ParsedCertificate[] | Untrusted => {
  const last = chain.at(-1)
  if (last === undefined) return no('malformed', 'no certificate')
  if ('rootFingerprint' in anchor) {
    const found = last.sha256 === anchor.rootFingerprint && chain.length > 1
    return found ? chain : no('no-root', 'the chain does not end in the root with the expected fingerprint')
  }
  for (const der of anchor.roots) {
    const root = parseCertificate(der)
    if (root.kind === 'malformed') return no('malformed', `a trusted root: ${root.why}`)
    if (root.sha256 === last.sha256 && chain.length > 1) return chain
    if (linkProblem(last, root) === null) return [...chain, root]
  }
  return no('no-root', 'the chain does not lead to a trusted root')
}

const forServers: readonly Purpose[] = ['serverAuth']

const checkLinks = (path: readonly ParsedCertificate[], purposes = forServers): Untrusted | null => {
  for (const [place, certificate] of path.entries()) {
    // The root is its own issuer.
    const issuer = path[place + 1] ?? certificate
    const mismatch = linkProblem(certificate, issuer)
    if (mismatch !== null) return no('name-mismatch', `${certificate.subject}: ${mismatch}`)
    const unfit = place === 0 ? null : checkAuthority(certificate, place - 1, purposes)
    if (unfit !== null) return unfit
  }
  for (const [place, certificate] of path.entries()) {
    if (isSignedBy(certificate, path[place + 1] ?? certificate)) continue
    return no('bad-signature', `${certificate.subject}: the signature is not by its issuer`)
  }
  return null
}

const linkProblem = (certificate: ParsedCertificate, issuer: ParsedCertificate): string | null => {
  if (Buffer.compare(certificate.issuerName, issuer.subjectName) !== 0) {
    return `issued by ${certificate.issuer}, followed by ${issuer.subject}`
  }
  const selfIssued = certificate === issuer && certificate.authorityKeyId === null
  if (issuer.subjectKeyId !== null && (selfIssued || certificate.authorityKeyId === issuer.subjectKeyId)) return null
  return 'issued by another key than that of the certificate that follows'
}

/** `below`: the number of authorities between this one and the leaf. */
const checkAuthority = (
  certificate: ParsedCertificate,
  below: number,
  wanted: readonly Purpose[],
): Untrusted | null => {
  if (!certificate.ca) return no('not-a-ca', `${certificate.subject} is not a CA`)
  if (!certificate.keyUsage.includes('keyCertSign'))
    return no('not-a-ca', `${certificate.subject} may not sign certificates`)
  if (certificate.pathLen !== null && certificate.pathLen < below) {
    return no('path-length', `${certificate.subject} allows ${certificate.pathLen} authorities below it, not ${below}`)
  }
  const allowed = certificate.extendedKeyUsage
  const barred = allowed.length === 0 ? undefined : wanted.find((purpose) => !allowed.includes(purpose))
  if (barred !== undefined) {
    const whom = barred === 'serverAuth' ? 'servers' : 'clients'
    return no('wrong-usage', `${certificate.subject} may not sign for ${whom}`)
  }
  return null
}

/** Checked after the signatures: the holder of an authority's key cannot avoid the limits in that authority's certificate. */
const checkWithdrawn = (path: readonly ParsedCertificate[], withdrawn: readonly string[]): Untrusted | null => {
  const hit = path.find(({ subjectKeyId }) => subjectKeyId !== null && withdrawn.includes(subjectKeyId))
  return hit === undefined ? null : no('withdrawn', `${hit.subject} has been withdrawn by the plane`)
}

const checkLeaf = (leaf: ParsedCertificate): Untrusted | null => {
  if (leaf.ca) return no('wrong-usage', `${leaf.subject} is a CA, not a server`)
  if (!leaf.keyUsage.includes('digitalSignature')) return no('wrong-usage', `${leaf.subject} may not be used for TLS`)
  return leaf.extendedKeyUsage.includes('serverAuth') ? null : no('wrong-usage', `${leaf.subject} is not for a server`)
}

const checkMark = (leaf: ParsedCertificate, { host, mark }: Pick<ServerChain, 'host' | 'mark'>): Untrusted | null => {
  const why = markProblem(leaf, host === null ? { ...mark, required: true } : mark)
  return why === null ? null : no('wrong-mark', why)
}

/** Null: the certificate is the plane's, as far as its URI names say. */
export const markProblem = ({ uris }: Pick<ParsedCertificate, 'uris'>, mark: ExpectedMark): string | null => {
  const other = uris.find((uri) => uri !== mark.uri)
  if (other !== undefined) return `the certificate is of ${other.slice(0, 128)}, not of ${mark.uri}`
  return uris.length === 0 && mark.required ? `the certificate lacks ${mark.uri}, which this plane has` : null
}

const checkHost = (leaf: ParsedCertificate, host: string | null): Untrusted | null => {
  if (host === null || isForHost(leaf, host)) return null
  const names = [...leaf.dnsNames, ...leaf.ips].slice(0, 8).join(', ')
  return no('wrong-name', `the certificate is for ${names === '' ? 'no host' : names}, not for ${host}`)
}

const checkValidity = (path: readonly ParsedCertificate[], nowMs: number): Untrusted | null => {
  const begun = path.every((certificate) => certificate.notBeforeMs <= nowMs)
  // At notAfter itself it is over: OpenSSL reads it so, and the plane and its nodes must agree.
  const ended = path.some((certificate) => nowMs >= certificate.notAfterMs)
  if (begun && !ended) return null
  const notBeforeMs = Math.max(...path.map((certificate) => certificate.notBeforeMs))
  const notAfterMs = Math.min(...path.map((certificate) => certificate.notAfterMs))
  return {
    kind: 'untrusted',
    code: ended ? 'expired' : 'not-yet-valid',
    why: ended ? 'a certificate of the chain has expired' : 'a certificate of the chain is not valid yet',
    validity: notBeforeMs <= notAfterMs ? { notBeforeMs, notAfterMs } : null,
  }
}
