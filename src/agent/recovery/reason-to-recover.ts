// Whether an identity that is in use has come to its end, as far as this machine can tell by itself. What the plane says of
// it comes with its refusals.

import type { AgentParts } from '#agent/core/agent-deps.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { trouble, type Trouble } from '#agent/core/trouble.ts'
import { expired, isExpired } from '#agent/state/expired.ts'
import { wayBack } from './way-back.ts'

type WatchingAgent = Pick<AgentParts, 'bundles' | 'keeper' | 'episode' | 'clock'>

/** One stranger at an address is a detour; so many in a row, at every address, are a root that is gone. */
const strangersInARow = 3

/** Null: it goes on with the one it has. */
export const reasonToRecover = (agent: WatchingAgent, identity: Identity): Trouble | null => {
  const { episode } = agent
  const way = wayBack(agent)
  if (way === null) return null
  if (way.credential.kind === 'repair') {
    return trouble('repair_requested', 'A repair bundle was brought to this machine.', 'The agent uses it by itself')
  }
  // While a channel is open, the plane takes the certificate and our roots know the plane, whatever else seems to be so.
  if (episode.channelIsOpen()) return null
  if (isExpired(agent, identity)) return expired(agent, identity)
  const story = episode.current()
  return story !== null && episode.distrusted() >= strangersInARow ? story.trouble : null
}
