// Whether certificates still hold, for operators: the revocation lists others fetch, and one certificate by its serial.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { toPem } from '#pki/pem.ts'
import { findCertificate, type FindCertificateDeps } from './certificate-status-of.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { RevocationLists } from './revocation-lists.ts'
import { certificateStatusView } from './certificate-status-view.ts'
import { isoTime } from '#platform/clock.ts'
import { CertificateStatusView, CrlAnswer, CrlQuery, SerialParams } from '#wire/ca/certificate-status-api.ts'
import { answer, type Answer, type Route } from '#plane/http/route.ts'

export type StatusRoutesDeps = FindCertificateDeps & {
  readonly authority: Pick<Authority, 'view'>
  readonly revocationLists: Pick<RevocationLists, 'list'>
}

export const operatorStatusRoutes = (deps: StatusRoutesDeps): readonly Route[] => [
  {
    method: 'GET',
    path: '/v1/ca/crl',
    access: 'viewer',
    summary: 'The revocation list of an issuing CA, full or delta',
    query: CrlQuery,
    answer: CrlAnswer,
    handle: (call) => revocationList(deps, call.query),
  },
  {
    method: 'GET',
    path: '/v1/ca/certificates/:serial',
    access: 'viewer',
    summary: 'Whether a certificate of ours still holds',
    params: SerialParams,
    answer: CertificateStatusView,
    handle: async ({ params }) => {
      const serial = params['serial'] ?? ''
      return answer(certificateStatusView(serial, await findCertificate(deps, serial)))
    },
  },
]

const revocationList = async (
  { authority, revocationLists }: StatusRoutesDeps,
  { issuer, delta = false }: CrlQuery,
): Promise<Answer | Refusal> => {
  const signing = authority.view().authorities.find((one) => one.role === 'issuing' && one.signing)
  const id = issuer ?? signing?.id
  const list = id === undefined ? null : await revocationLists.list(id, delta ? 'delta' : 'full')
  if (list === null)
    return refuse(
      'ISSUER_NOT_FOUND',
      'lists are made for issuing CAs whose key is in a file here; ask about the others by OCSP, or by muster ca status',
    )
  return answer({
    issuer: list.issuer,
    number: list.number,
    base_number: list.baseNumber,
    this_update: isoTime(list.thisUpdateMs),
    next_update: isoTime(list.nextUpdateMs),
    entries: list.entries,
    crl: toPem('X509 CRL', list.der),
  })
}
