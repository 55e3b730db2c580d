// `--wireguard` and `--wireguard-endpoint`.

import { isRefusal } from '#domain/core/refusal.ts'
import { checkUnderlay } from '#domain/network/wireguard-part.ts'
import type { UnderlayEndpoint } from '#domain/core/wireguard.ts'
import type { Problem } from '#platform/given-settings.ts'
import { formatIp, parseIp } from '#platform/ip-address.ts'
import type { AgentConfig } from './config.ts'
import type { AgentValues } from './settings.ts'

const usualPort = 51_820
const endpointShape = /^(?:\[([0-9A-Fa-f:.]+)\](?::(\d{1,5}))?|([0-9.]+)(?::(\d{1,5}))?|([0-9A-Fa-f:]+))$/

export const wireguardOf = ({
  wireguard,
  wireguardEndpoint: places,
}: Pick<AgentValues, 'wireguard' | 'wireguardEndpoint'>): AgentConfig['wireguard'] | Problem => {
  if (wireguard.value === null) {
    return places.value.length > 0 ? { problem: `${places.label} is of use only with --wireguard` } : null
  }
  const endpoint = endpointOf(places.value)
  if (endpoint === 'wrong') {
    return { problem: `${places.label} takes an IPv4 and an IPv6 address at most, with one port for both` }
  }
  // The plane would refuse it in the same words.
  if (endpoint !== null && isRefusal(checkUnderlay(endpoint))) {
    return { problem: `${places.label} takes addresses where other machines reach this one` }
  }
  return { interface: wireguard.value, endpoint }
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
