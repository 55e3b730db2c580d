// `--wireguard` and `--wireguard-endpoint`.

import { isRefusal } from '#domain/core/refusal.ts'
import { checkUnderlay } from '#domain/network/wireguard-part.ts'
import type { UnderlayEndpoint } from '#domain/core/wireguard.ts'
import { formatIp, parseIp } from '#platform/ip-address.ts'
import type { AgentConfig, AgentOptions } from './config.ts'

type Parsed =
  | { readonly kind: 'wireguard'; readonly wireguard: AgentConfig['wireguard'] }
  | { readonly kind: 'invalid'; readonly why: string }

const usualPort = 51_820
/** As long as the kernel takes, and nothing that could be read as an option. */
const interfaceShape = /^[A-Za-z][A-Za-z0-9_.-]{0,14}$/
const endpointShape = /^(?:\[([0-9A-Fa-f:.]+)\](?::(\d{1,5}))?|([0-9.]+)(?::(\d{1,5}))?|([0-9A-Fa-f:]+))$/

export const wireguardOf = (
  options: Pick<AgentOptions, 'wireguard' | 'wireguardEndpoint'>,
  env: Readonly<Record<string, string | undefined>>,
): Parsed => {
  const name = options.wireguard ?? env['MUSTER_WIREGUARD'] ?? ''
  const places = options.wireguardEndpoint ?? (env['MUSTER_WIREGUARD_ENDPOINT'] ?? '').split(',').filter(Boolean)
  if (name === '') {
    if (places.length > 0) return invalid('--wireguard-endpoint is of use only with --wireguard')
    return { kind: 'wireguard', wireguard: null }
  }
  if (!interfaceShape.test(name)) return invalid('--wireguard takes the name of an interface, such as muster0')
  const endpoint = endpointOf(places)
  if (endpoint === 'wrong') {
    return invalid('--wireguard-endpoint takes an IPv4 and an IPv6 address at most, with one port for both')
  }
  // The plane would refuse it in the same words.
  if (endpoint !== null && isRefusal(checkUnderlay(endpoint))) {
    return invalid('--wireguard-endpoint takes addresses where other machines reach this one')
  }
  return { kind: 'wireguard', wireguard: { interface: name, endpoint } }
}

type Place = { readonly family: 'ipv4' | 'ipv6'; readonly address: string; readonly port: number }

const endpointOf = (texts: readonly string[]): UnderlayEndpoint | null | 'wrong' => {
  if (texts.length === 0) return null
  const places: Place[] = []
  for (const text of texts) {
    const place = placeOf(text.trim())
    if (place === null || places.some(({ family, port }) => family === place.family || port !== place.port))
      return 'wrong'
    places.push(place)
  }
  const of = (wanted: Place['family']): string | null => places.find(({ family }) => family === wanted)?.address ?? null
  return { ipv6: of('ipv6'), ipv4: of('ipv4'), port: places[0]?.port ?? usualPort }
}

const placeOf = (text: string): Place | null => {
  const [, bracketed, portOf6, ipv4, portOf4, bare] = endpointShape.exec(text) ?? []
  const bytes = parseIp(bracketed ?? ipv4 ?? bare ?? '')
  const port = Number(portOf6 ?? portOf4 ?? usualPort)
  if (bytes === null || port < 1 || port > 65_535) return null
  return { family: bytes.length === 4 ? 'ipv4' : 'ipv6', address: formatIp(bytes), port }
}

const invalid = (why: string): Parsed => ({ kind: 'invalid', why })
