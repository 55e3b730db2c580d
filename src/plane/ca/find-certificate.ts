// One certificate by its serial number alone: people copy that, and seldom know who signed.

import { certificateKey } from '#domain/core/certificate.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { certificateStatusOf, type FoundStatus, type StatusOfDeps } from './certificate-status-of.ts'

export type FindCertificateDeps = StatusOfDeps & { readonly store: Pick<Store, 'get' | 'issuers'> }

export const findCertificate = async (deps: FindCertificateDeps, serial: string): Promise<FoundStatus> => {
  for (const { value } of await deps.store.issuers()) {
    const row = await deps.store.get('certificate', certificateKey(value.id, serial))
    if (row !== null) return certificateStatusOf(deps, value.id, serial)
  }
  return { record: null, status: { kind: 'unknown' } }
}
