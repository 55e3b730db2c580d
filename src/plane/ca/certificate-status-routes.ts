// Whether certificates still hold, for operators: the revocation lists others fetch, and one certificate by its serial.

import { refuse } from '#domain/core/refusal.ts'
import { toPem } from '#pki/pem.ts'
import { findCertificate } from './certificate-status-of.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { RevocationLists } from './revocation-lists.ts'
import { isoTime } from '#platform/clock.ts'
import { certificateStatusApi, certificateStatusView, type CrlQuery } from '#wire/ca/certificate-status-api.ts'
import { answer, type Route, serve } from '#plane/http/route.ts'
import type { Core } from '#plane/core/core.ts'

type StatusParts = {
  readonly authority: Pick<Authority, 'view'>
  readonly revocationLists: Pick<RevocationLists, 'list'>
}

export const operatorStatusRoutes = (core: Pick<Core, 'store' | 'clock'>, parts: StatusParts): readonly Route[] =>
  serve(certificateStatusApi, {
    crl: (call) => revocationList(parts, call.query),
    show: async ({ params: { serial } }) => {
      return answer(certificateStatusView(serial, await findCertificate(core, serial)))
    },
  })

const revocationList = async ({ authority, revocationLists }: StatusParts, { issuer, delta = false }: CrlQuery) => {
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
