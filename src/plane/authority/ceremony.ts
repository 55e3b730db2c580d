// The online half of the ceremony with an offline root: a request goes out, a certificate comes back and is
// taken into service. The pending key is durable and sealed before the request is shown, so a repeat is the same request.

import { type Attribution, entry } from '#domain/core/change.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { generateKey, keyId, loadPrivateKey, spkiHash, type PrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { sameBytes } from '#platform/bytes.ts'
import { bookTries, type AuthorityDeps, type AuthorityState } from './authority-state.ts'
import { certificateOf, keepKey, recordOf } from './ca-signer.ts'
import { checkImported } from './check-imported.ts'
import { makeRequest, readRequest, type RequestedRole } from './intermediate-request.ts'
import type { IssuerBook } from './issuer-book.ts'
import { commitOnce, retryLostRaces } from '#plane/core/commit-decision.ts'
import type { KeyName } from '#plane/keys/key-custody.ts'
import { takeIntoService } from './take-into-service.ts'

type Pending = {
  readonly name: KeyName
  readonly key: PrivateKey
  readonly requestPem: string
  readonly role: RequestedRole
}

/** While nobody else does anything of this kind: two planes must not show two requests. */
export const requestIntermediate = async (deps: AuthorityDeps, by: Attribution): Promise<string> => {
  const role = deps.options.issuerKey === 'memory' ? 'domain-ca' : 'issuing'
  await deps.custody.refresh()
  const pending = findPending(deps, role) ?? (await newPending(deps, role))
  const body = { role, key: `SHA256:${spkiHash(pending.key.spki)}` }
  const asked = entry(by, deps.clock.nowMs(), 'ca.requested', {}, body)
  const outcome = await commitOnce(deps, { reads: [], writes: [], entries: [asked] })
  if (outcome === 'lost-race') throw new Error('a change without rows cannot lose a race')
  return pending.requestPem
}

/** While nobody else does anything of this kind, and the book has just been read. */
export const importIntermediate = (
  deps: AuthorityDeps,
  state: AuthorityState,
  certificatePem: string,
  by: Attribution,
): Promise<'imported' | Refusal> => retryLostRaces(bookTries, () => attemptImport(deps, state, certificatePem, by))

const attemptImport = async (
  deps: AuthorityDeps,
  state: AuthorityState,
  certificatePem: string,
  by: Attribution,
): Promise<'imported' | 'lost-race' | Refusal> => {
  const der = fromPem('CERTIFICATE', certificatePem)
  if (der === null) return refuse('CA_REQUEST_INVALID', 'not one PEM block CERTIFICATE')
  if (isInService(state.book, der)) return 'imported'
  const certificate = parseCertificate(der)
  if (certificate.kind === 'malformed') return refuse('CA_REQUEST_INVALID', certificate.why)

  const role = deps.options.issuerKey === 'memory' ? 'domain-ca' : 'issuing'
  const pending = findPending(deps, role)
  if (pending === null) return refuse('CA_REQUEST_INVALID', 'this plane has made no request that is still open')
  const problem = checkImported({
    certificate,
    role,
    root: certificateOf(state.book.root),
    requestedSpki: pending.key.spki,
    longestLeafMs: state.longestLeafMs,
    nowMs: deps.clock.nowMs(),
  })
  if (problem !== null) return refuse('CA_REQUEST_INVALID', problem)

  const record = recordOf(certificate, { role, custody: 'file', parent: state.book.root.id })
  if (state.book.find(record.id) !== null)
    return refuse('CA_REQUEST_INVALID', 'its key identifier is on record already')
  const made = { record, certificate, key: pending.key }
  await keepKey(deps.custody, made)
  const story = { why: 'imported', by, fence: null, everywhere: false }
  const outcome = await takeIntoService(deps, state, made, story)
  if (outcome === 'lost-race') return outcome
  await deps.custody.drop(pending.name)
  return 'imported'
}

/** A crash between the import and its end leaves a request that has been answered. */
export const dropAnsweredRequests = async (deps: AuthorityDeps, book: IssuerBook): Promise<void> => {
  const known = book.rows.map(({ value }) => certificateOf(value).spki)
  for (const { name, key } of allPending(deps)) {
    if (known.some((spki) => sameBytes(spki, key.spki))) await deps.custody.drop(name)
  }
}

const isInService = (book: IssuerBook, der: Uint8Array): boolean =>
  book.rows.some(({ value }) => value.retiredAtMs === null && value.der === Buffer.from(der).toString('base64'))

const newPending = async ({ custody }: AuthorityDeps, role: RequestedRole): Promise<Pending> => {
  const key = generateKey('p256')
  const requestPem = makeRequest(key, role)
  const name: KeyName = { role: 'request', id: keyId(key.spki) }
  await custody.keep(name, key.pkcs8Pem() + requestPem)
  return { name, key, requestPem, role }
}

const findPending = (deps: AuthorityDeps, role: RequestedRole): Pending | null =>
  allPending(deps).find((pending) => pending.role === role) ?? null

const allPending = ({ custody }: AuthorityDeps): readonly Pending[] =>
  custody.names().flatMap((name) => {
    const text = name.role === 'request' ? custody.find(name) : null
    if (text === null) return []
    const border = text.indexOf('-----BEGIN CERTIFICATE REQUEST-----')
    const [key, requestPem] = [loadPrivateKey(text.slice(0, border)), text.slice(border)]
    const request = readRequest(requestPem)
    return request.kind === 'malformed' ? [] : [{ name, key, requestPem, role: request.role }]
  })
