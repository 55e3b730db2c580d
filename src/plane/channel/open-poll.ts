// A long-poll is presence like a channel: its session takes the same hold, is fenced by the same rules, and is in the registry, where
// a denial, an expired certificate or another process ends it. It lasts from call to call; each call is its sign of life.

import type { NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { Patience, Session, SessionSocket } from '#plane/sessions/session.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { ChannelParts } from './channel-parts.ts'
import { limitToCertificate } from './cut-sessions.ts'
import { openSession, type OpeningParts } from './open-session.ts'

export type PollOpening = {
  readonly principal: NodePrincipal
  readonly evidence: AgentEvidence | null
  readonly process: string
  readonly correlation: string
  readonly patience: Patience
  readonly socket: SessionSocket
}

export type PollParts = {
  readonly channel: OpeningParts['channel'] & Pick<ChannelParts, 'presence' | 'holders'>
  readonly denyList: OpeningParts['denyList']
}

export const openPollSession = async (
  core: FlowCore,
  parts: PollParts,
  { principal, evidence, process, correlation, patience, socket }: PollOpening,
): Promise<Session | Refusal> => {
  const { sessions, presence, holders } = parts.channel
  let session: Session | null = null
  const outcome = await openSession(core, parts, { principal, evidence, process, correlation }, (number, node) => {
    presence.forget(principal.id)
    const opened = sessions.open(socket, principal, evidence, number, { patience, process })
    session = opened
    holders.opened(opened, node)
    limitToCertificate(opened, node)
    return opened
  })
  if (isRefusal(outcome)) return outcome
  if (session === null) throw new Error('a session was opened and is not there')
  return session
}
