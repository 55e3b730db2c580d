import type { Identity } from '#agent/state/credentials.ts'
import { addresses, under } from '#agent/link/plane-client.ts'

/** One address after the other; the one that worked is kept until it does not. `place` counts those that did not. */
export const channelUrl = (identity: Identity, place: number): string => {
  const bases = addresses(identity.endpoints.stream, identity.origin.url.replace(/^https:/, 'wss:'))
  const base = bases[place % bases.length] ?? identity.origin.url
  return under(base.replace(/^https:/, 'wss:'), `/v1/nodes/${identity.nodeId}/channel`)
}
