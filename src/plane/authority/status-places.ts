// Where others ask whether a certificate still holds: the paths of the status listener, under the URL it is found at.

import type { IssuerRecord } from '#domain/ca/issuer-record.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { StatusPlaces } from '#pki/authority-certificates.ts'

export const ocspPath = '/ocsp'
const fullListPath = (issuer: IssuerId): string => `/crl/${issuer}.crl`
export const deltaListPath = (issuer: IssuerId): string => `/crl/${issuer}-delta.crl`

/** An issuer in memory has no lists: who would sign them when its plane is gone? */
export const statusPlacesOf = (
  url: string | null,
  { id, custody }: Pick<IssuerRecord, 'id' | 'custody'>,
): StatusPlaces => ({
  ocspUrl: url === null ? null : `${url}${ocspPath}`,
  crlUrl: url === null || custody !== 'file' ? null : `${url}${fullListPath(id)}`,
})
