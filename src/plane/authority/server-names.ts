// The names the plane's certificates are for, as such names read in a certificate: only then can one see whether they
// have changed.

import type { ServerNames } from '#domain/ca/server-certificate.ts'
import { formatIp, parseIp } from '#platform/ip-address.ts'

export const canonicalNames = ({ dns, ip }: ServerNames): ServerNames => ({
  dns: [...new Set(dns.map((name) => name.toLowerCase()))],
  ip: [...new Set(ip.map(canonicalIp))],
})

const canonicalIp = (address: string): string => {
  const bytes = parseIp(address)
  if (bytes === null) throw new Error(`${address} is not an IP address`)
  return formatIp(bytes)
}
