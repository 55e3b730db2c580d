// The status of one certificate by what is in the store now: a revocation that is committed is never overlooked.

import { certificateKey, type CertificateRow } from '#domain/core/certificate.ts'
import { certificateStatus, denialKeysFor, type CertificateStatus } from '#domain/ca/certificate-status.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { Core } from '#plane/core/core.ts'

export type FoundStatus = { readonly row: CertificateRow | null; readonly status: CertificateStatus }

export const certificateStatusOf = async (
  { store, clock }: Pick<Core, 'store' | 'clock'>,
  issuer: IssuerId,
  serial: string,
): Promise<FoundStatus> => {
  const row = (await store.get('certificate', certificateKey(issuer, serial)))?.value ?? null
  const subject = row?.subject.kind === 'node' ? row.subject : null
  const [denials, node, ban, authority] = await Promise.all([
    Promise.all(denialKeysFor(issuer, serial, row).map((key) => store.get('denial', key))),
    subject === null ? null : store.get('node', subject.node),
    row === null ? null : store.get('key-ban', row.spki),
    store.get('issuer', issuer),
  ])
  const status = certificateStatus({
    row,
    denials: denials.flatMap((row) => (row === null ? [] : [row.value])),
    node: node?.value ?? null,
    ban: ban?.value ?? null,
    issuer: authority?.value ?? null,
    nowMs: clock.nowMs(),
  })
  return { row, status }
}

// One certificate by its serial number alone: people copy that, and seldom know who signed.

export const findCertificate = async (core: Pick<Core, 'store' | 'clock'>, serial: string): Promise<FoundStatus> => {
  for (const { value } of await core.store.issuers()) {
    const row = await core.store.get('certificate', certificateKey(value.id, serial))
    if (row !== null) return certificateStatusOf(core, value.id, serial)
  }
  return { row: null, status: { kind: 'unknown' } }
}
