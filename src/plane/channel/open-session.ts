// Opens a channel: no other holder answers, this replica takes the hold, the certificate is used, and the session is registered.
// Of two processes that open at once, here or on two replicas, one gets the hold and the other is judged like a later caller.

import type { Node } from '#domain/core/node.ts'
import type { NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { useCertificate } from '#plane/core/use-certificate.ts'
import type { Hold } from '#plane/store/contract/replicas.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { endReplaced, holderUnknown, otherSessions } from '#plane/identity/holders.ts'
import type { SecondHolders } from '#plane/identity/second-holder.ts'
import { askReplica, lookUpWithinMs, makeRoomQuestion } from '#plane/cluster/replica-questions.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { FlowCore } from '#plane/core/core.ts'
import type { ChannelParts } from './channel-parts.ts'

export type OpeningParts = {
  readonly channel: Pick<ChannelParts, 'sessions' | 'holding' | 'replicas' | 'gate' | 'secondHolders'>
  /** Asked in the very turn a session is registered: a denial committed while it was opening must not miss it. */
  readonly denyList: { refusalOf(principal: NodePrincipal): Refusal | null }
}

export type Opening = {
  readonly principal: NodePrincipal
  readonly evidence: AgentEvidence | null
  /** As `Session.process`. */
  readonly process: string | null
  readonly correlation: string
}

/** Puts the session into the registry in the turn it is called; null: the caller has hung up. */
type Register = (number: number, node: Node) => Session | null

/** In each round another caller was quicker and was probed: many in a row are a crowd around one node. */
const rounds = 8

export const openSession = async (
  core: FlowCore,
  parts: OpeningParts,
  opening: Opening,
  register: Register,
): Promise<'opened' | Refusal> => {
  const { gate, holding, secondHolders } = parts.channel
  let over: Hold | null = null
  for (let round = 0; round < rounds; round++) {
    const { principal, evidence, correlation } = opening
    const no =
      gate.refusal() ??
      (await secondHolders.refuseDraining(principal, evidence, correlation)) ??
      (await makeRoomHere(parts.channel, opening))
    if (no !== null) return no
    const found: Hold | null = over
    const outcome: HoldOrRefusal = await holding.inTurn(opening.principal.id, () =>
      holdAndRegister(core, parts, opening, found, register),
    )
    if (outcome === 'opened' || isRefusal(outcome)) return outcome
    if (outcome === 'taken-here') continue
    const stays = await makeRoomElsewhere(parts.channel, opening, outcome)
    if (stays !== null) return stays
    over = outcome
  }
  return { ...refuse('BUSY', 'many channels of the same node at once'), retryAfterMs: 1000 }
}

type HoldOrRefusal = 'opened' | 'taken-here' | Hold | Refusal

/** In the node's turn: only the store is asked. */
const holdAndRegister = async (
  core: FlowCore,
  { channel, denyList }: OpeningParts,
  { principal, process, correlation }: Opening,
  over: Hold | null,
  register: Register,
): Promise<HoldOrRefusal> => {
  const { id } = principal
  const { sessions, holding, gate } = channel
  // Another process was quicker: it is asked like any that was there before.
  if (otherSessions(sessions, id, process).length > 0) return 'taken-here'
  const number = sessions.nextNumber()
  const before = await holding.elsewhere(id)
  const taken = await holding.take(id, { number, instance: process }, over)
  if (taken !== 'held') return taken
  let opened: Session | null = null
  try {
    const standing = await useCertificate(core, principal, correlation)
    if (standing.kind === 'refused') return standing
    // From here to the session in the registry is one turn: a later commit finds the session there.
    if (sessions.isClosed()) return refuse('UNAVAILABLE', 'the plane is stopping')
    const no = gate.refusal() ?? denyList.refusalOf(principal)
    if (no !== null) return no
    opened = register(number, standing.node.value)
    return 'opened'
  } finally {
    if (opened === null) holding.giveBack(id, number, before)
    else if (before !== null) holding.moved(id, before)
  }
}

/** Null: there is no other holder any more. A process that was killed leaves a channel that does not answer. */
const makeRoomHere = async (channel: OpeningParts['channel'], opening: Opening): Promise<Refusal | null> => {
  const others = otherSessions(channel.sessions, opening.principal.id, opening.process)
  if (others.length === 0) return null
  const copy = await refuseSecond(channel.secondHolders, opening)
  if (copy === null) endReplaced(others)
  return copy
}

/** The same where another replica has the channel: it has ended it when it says so, or is gone with all it had. */
const makeRoomElsewhere = async (
  channel: OpeningParts['channel'],
  opening: Opening,
  hold: Hold,
): Promise<Refusal | null> => {
  // A channel that names no process may be the caller's own.
  if (hold.instance === null) return null
  const copy = await refuseSecond(channel.secondHolders, opening)
  if (copy !== null) return copy
  const room = { node: opening.principal.id, instance: opening.process }
  const asked = await askReplica(channel.replicas, hold.replica, makeRoomQuestion, room, lookUpWithinMs)
  return asked.kind === 'no-answer' ? holderUnknown(room.node) : null
}

const refuseSecond = (
  secondHolders: Pick<SecondHolders, 'refuseCopy'>,
  { principal, evidence, process, correlation }: Opening,
): Promise<Refusal | null> => {
  const { id: node, source, credential } = principal
  const caller = { node, source, serial: credential.serial, evidence, process, correlation }
  return secondHolders.refuseCopy(caller, 'second-instance')
}
