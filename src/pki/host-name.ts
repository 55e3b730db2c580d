// Whether a certificate is for the host we meant to reach. Only alternative names count; the common name never does.

import { formatIp, parseIp } from '#platform/ip-address.ts'

type Names = { readonly dnsNames: readonly string[]; readonly ips: readonly string[] }

/** `host` as in a URL: a DNS name, an IPv4 address, or an IPv6 address with or without brackets. */
export const isForHost = (names: Names, host: string): boolean => {
  const address = parseIp(host.replace(/^\[(.*)\]$/, '$1'))
  if (address !== null) return names.ips.includes(formatIp(address))
  const wanted = host.toLowerCase().replace(/\.$/, '')
  if (!isDnsName(wanted)) return false
  return names.dnsNames.some((pattern) => matches(pattern.toLowerCase(), wanted))
}

/** Lower-case labels; what looks like an address to anyone is no name. */
const isDnsName = (name: string): boolean =>
  name.length <= 253 &&
  name.split('.').every((label) => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label)) &&
  !/(^|\.)(\d+|0x[0-9a-f]*)$/.test(name)

const matches = (pattern: string, wanted: string): boolean => {
  if (!pattern.startsWith('*.')) return pattern === wanted
  // The star matches exactly one whole label, and never all of a top-level domain.
  const parent = pattern.slice(2)
  if (!isDnsName(parent) || !parent.includes('.')) return false
  return wanted.slice(wanted.indexOf('.') + 1) === parent && wanted.includes('.')
}
