// The online half of the ceremony with an offline root: a request goes out, a certificate comes back and is
// taken into service. The pending key is durable and sealed before the request is shown, so a repeat is the same request.

import { type Attribution, entry } from '#domain/core/change.ts'
import { refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { keyId, spkiHash } from '#pki/keys.ts'
import type { Signer } from '#pki/signer.ts'
import { parseCertificate, isSignedBy, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { sameBytes } from '#platform/bytes.ts'
import {
  bookTries,
  newCaKey,
  type AuthorityOptions,
  type AuthorityParts,
  type AuthorityState,
} from './authority-state.ts'
import { certificateOf, keepKey, issuerRow } from './ca-signer.ts'
import { makeRequest, readRequest, type RequestedRole, pathLenOf } from './sign-intermediate.ts'
import type { IssuerBook } from './issuer-book.ts'
import { commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { KeyName } from '#plane/keys/key-custody.ts'
import { isReference } from '#plane/keys/key-reference.ts'
import { signerOfKept } from '#plane/keys/keys-elsewhere.ts'
import { custodyOf, keyHere } from './new-key.ts'
import { takeIntoService, type SucceedingParts } from './take-into-service.ts'
import { isoTime } from '#platform/clock.ts'

type Pending = {
  readonly name: KeyName
  readonly key: Signer
  /** As the custody keeps it. */
  readonly kept: string
  readonly requestPem: string
  readonly role: RequestedRole
}

export type RequestParts = Pick<AuthorityParts, 'core' | 'custody'> & {
  readonly options: Pick<AuthorityOptions, 'issuerKey' | 'caKeyPlace'>
}

/** Runs exclusively: two replicas must not show two requests. */
export const requestIntermediate = async (
  parts: RequestParts,
  by: Attribution,
  wanted: 'runtime' | 'workers',
): Promise<string> => {
  const role = wanted === 'workers' ? 'workers-issuing' : runtimeRole(parts)
  await parts.custody.refresh()
  const pending = findPending(parts, role) ?? (await newPending(parts, role))
  const body = { role, key: `SHA256:${spkiHash(pending.key.spki)}` }
  const asked = entry(by, parts.core.clock.nowMs(), 'ca.requested', {}, body)
  const outcome = await commitOnce(parts.core, { reads: [], writes: [], entries: [asked] })
  if (outcome === 'lost-race') throw new Error('a change without rows cannot lose a race')
  return pending.requestPem
}

const runtimeRole = ({ options }: Pick<RequestParts, 'options'>): 'domain-ca' | 'issuing' =>
  options.issuerKey === 'memory' ? 'domain-ca' : 'issuing'

export type ImportParts = SucceedingParts & { readonly workers: Pick<AuthorityParts['workers'], 'stored' | 'take'> }

/** Runs exclusively, after the book has just been read. */
export const importIntermediate = (
  parts: ImportParts,
  state: AuthorityState,
  certificatePem: string,
  by: Attribution,
): Promise<'imported' | Refusal> => retryLostRaces(bookTries, () => attemptImport(parts, state, certificatePem, by))

const attemptImport = async (
  parts: ImportParts,
  state: AuthorityState,
  certificatePem: string,
  by: Attribution,
): Promise<'imported' | 'lost-race' | Refusal> => {
  const der = fromPem('CERTIFICATE', certificatePem)
  if (der === null) return refuseField('CA_REQUEST_INVALID', 'certificate', 'not one PEM block CERTIFICATE')
  if (isInService(parts, state.book, der)) return 'imported'
  const certificate = parseCertificate(der)
  if (certificate.kind === 'malformed') return refuseField('CA_REQUEST_INVALID', 'certificate', certificate.why)

  const answered = allPending(parts).find(({ key }) => sameBytes(key.spki, certificate.spki))
  const pending = answered ?? findPending(parts, runtimeRole(parts))
  if (pending === null) return refuse('CA_REQUEST_INVALID', 'this plane has made no request that is still open')
  const { role } = pending
  const problem = checkImported({
    certificate,
    role,
    root: certificateOf(state.book.root),
    requestedSpki: pending.key.spki,
    longestLeafMs: state.longestLeafMs,
    nowMs: parts.core.clock.nowMs(),
  })
  if (problem !== null) return refuseField('CA_REQUEST_INVALID', 'certificate', problem)

  const row = issuerRow(certificate, { role, custody: custodyOf(pending.kept), parent: state.book.root.id })
  if (state.book.find(row.id) !== null)
    return refuseField('CA_REQUEST_INVALID', 'certificate', 'its key identifier is on record already')
  const made = { row, certificate, key: pending.key, kept: pending.kept }
  await keepKey(parts.custody, made)
  const story = { why: 'imported', by, fencingToken: null, everywhere: false }
  const outcome =
    role === 'workers-issuing' ? await parts.workers.take(made, by) : await takeIntoService(parts, state, made, story)
  if (outcome === 'lost-race') return outcome
  await parts.custody.drop(pending.name)
  return 'imported'
}

/** A crash between the import and its end leaves a request that has been answered. */
export const dropAnsweredRequests = async (parts: AuthorityParts, book: IssuerBook): Promise<void> => {
  const rows = [...book.rows.map(({ value }) => value), ...parts.workers.stored().map(({ row }) => row)]
  const known = rows.map((row) => certificateOf(row).spki)
  for (const { name, key } of allPending(parts)) {
    if (known.some((spki) => sameBytes(spki, key.spki))) await parts.custody.drop(name)
  }
}

const isInService = ({ workers }: ImportParts, book: IssuerBook, der: Uint8Array): boolean => {
  const text = Buffer.from(der).toString('base64')
  return [...book.rows.map(({ value }) => value), ...workers.stored().map(({ row }) => row)].some(
    (row) => row.role !== 'root' && row.retiredAtMs === null && row.der === text,
  )
}

const newPending = async (parts: RequestParts, role: RequestedRole): Promise<Pending> => {
  const { key, kept } = role === 'workers-issuing' ? keyHere() : await newCaKey(parts, role)
  const requestPem = await makeRequest(key, role)
  const name: KeyName = { role: 'request', id: keyId(key.spki) }
  await parts.custody.keep(name, `${kept.trimEnd()}\n${requestPem}`)
  return { name, key, kept, requestPem, role }
}

const findPending = (parts: Pick<AuthorityParts, 'custody'>, role: RequestedRole): Pending | null =>
  allPending(parts).find((pending) => pending.role === role) ?? null

const allPending = ({ custody }: Pick<AuthorityParts, 'custody'>): readonly Pending[] =>
  custody.names().flatMap((name) => {
    const text = name.role === 'request' ? custody.find(name) : null
    if (text === null) return []
    const border = text.indexOf('-----BEGIN CERTIFICATE REQUEST-----')
    const [before, requestPem] = [text.slice(0, border), text.slice(border)]
    const request = readRequest(requestPem)
    if (request.kind === 'malformed') return []
    const kept = isReference(before) ? before.trimEnd() : before
    const key = signerOfKept(custody.elsewhere, kept, request.spki)
    return key === null ? [] : [{ name, key, kept, requestPem, role: request.role }]
  })

// Whether a certificate that came back from the root is the CA that was asked for.

export type ImportFacts = {
  readonly certificate: ParsedCertificate
  readonly role: RequestedRole
  readonly root: ParsedCertificate
  readonly requestedSpki: Uint8Array
  readonly longestLeafMs: number
  readonly nowMs: number
}

/** What is wrong with it, or null. */
const checkImported = (facts: ImportFacts): string | null => {
  const { certificate, role, root, nowMs } = facts
  if (!sameBytes(certificate.spki, facts.requestedSpki)) return 'its key is not the one this plane asked for'
  if (!sameBytes(certificate.issuerName, root.subjectName) || certificate.authorityKeyId !== root.subjectKeyId) {
    return 'it names another issuer than the root of this domain'
  }
  if (!isSignedBy(certificate, root)) return 'it is not signed by the root of this domain'
  if (!certificate.ca) return 'it is not a CA certificate'
  if (certificate.pathLen !== pathLenOf[role]) {
    return `its path length is ${certificate.pathLen ?? 'absent'} where ${pathLenOf[role]} is needed`
  }
  if (!certificate.keyUsage.includes('keyCertSign')) return 'its key usage does not let it sign certificates'
  if (role === 'workers-issuing') {
    if (certificate.extendedKeyUsage.join() !== 'clientAuth')
      return 'its extended key usage is not that of clients alone'
  } else if (certificate.extendedKeyUsage.length > 0) return 'its extended key usage limits what it may sign'
  if (certificate.unknownCritical.length > 0) return 'it has critical extensions this plane does not know'
  // 20 bytes are what every tool makes of a key; the issuer is named by them from now on.
  if (certificate.subjectKeyId === null || certificate.subjectKeyId.length !== 40)
    return 'it has no subject key identifier'
  return checkTimes(facts, nowMs)
}

const checkTimes = ({ certificate, root, longestLeafMs }: ImportFacts, nowMs: number): string | null => {
  const { notBeforeMs, notAfterMs } = certificate
  if (notBeforeMs > nowMs) return `it is valid only from ${isoTime(notBeforeMs)} on`
  if (notAfterMs > root.notAfterMs) return 'it outlives the root'
  if (notAfterMs - nowMs < longestLeafMs) {
    return `it ends ${isoTime(notAfterMs)}, before the longest certificate it would have to sign now`
  }
  return null
}
