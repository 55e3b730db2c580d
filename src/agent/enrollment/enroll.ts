// With no certificate the agent enrols, and goes on trying for as long as trying can help.

import type { JoinString } from '#wire/core/join-string.ts'
import { isoTime, parseIsoTime } from '#platform/clock.ts'
import type { AgentParts } from '#agent/core/agent-deps.ts'
import { enrolledAs, requestFor, withRequest } from '#agent/state/credentials.ts'
import { newKeyRequest, newRecoveryKey } from '#agent/state/key-request.ts'
import { nudgedPause } from '#agent/core/nudged-pause.ts'
import type { PlaneFailure } from '#agent/link/plane-failure.ts'
import type { Provided } from '#agent/state/provider.ts'
import { learnTime } from '#agent/link/learn-time.ts'
import { enrollCall, type Enrolled } from './enroll-call.ts'
import { madeForAnother, madeForNow } from '#agent/state/made-for.ts'
import { dropUsedJoin } from './join-source.ts'
import { nextTry } from './next-try.ts'

export const enroll = async (agent: AgentParts, join: JoinString): Promise<Provided> => {
  for (let attempt = 0; !agent.signal.aborted; attempt++) {
    const tried = await tryOnce(agent, join)
    if (tried.kind === 'enrolled') return accept(agent, tried)
    if (tried.kind === 'stopped') break
    if (tried.kind === 'refused' && tried.code === 'WG_KEY_IN_USE') agent.wireguard.keyRefused()
    const next = nextTry(tried, attempt, agent.random.unit())
    if (next.kind === 'give-up') return { kind: 'failed', outcome: next.outcome }
    if (next.newKey) agent.keeper.keep(withRequest(agent.keeper.credentials(), null))
    if (tried.kind === 'refused' && tried.code === 'ALREADY_ACTIVE') proveWithFormerKey(agent)
    const nextTryAtMs = agent.clock.nowMs() + next.waitMs
    agent.board.trouble('enrollment', tried.trouble, nextTryAtMs)
    agent.log.warn(
      { code: tried.trouble.code, next: tried.trouble.next, nextTry: isoTime(nextTryAtMs) },
      `${tried.trouble.text} ${next.intent}`.trim(),
    )
    await nudgedPause(agent, next.waitMs)
  }
  return { kind: 'failed', outcome: { kind: 'stopped' } }
}

const tryOnce = async (agent: AgentParts, join: JoinString): Promise<Enrolled | PlaneFailure> => {
  const { keeper, config, clock } = agent
  const purpose = { kind: 'enroll' } as const
  const open = requestFor(keeper.credentials(), purpose, config.keyType)
  const madeFor = madeForNow(config, join)
  const another = open === null ? null : madeForAnother(open.madeFor, madeFor)
  if (open !== null && another === null) return enrollCall(agent, join, open)
  if (another !== null) dropCopied(agent, another)
  // A new one each time: whoever may have copied the former holds that one too.
  const recoveryKey = config.recovery === 'key' ? newRecoveryKey() : null
  const request = newKeyRequest(
    purpose,
    config.keyType,
    config.nodeId ?? 'muster-agent',
    clock.nowMs(),
    recoveryKey,
    madeFor,
  )
  // Durable before it is sent: after a crash this very request is repeated, and the token is not lost to another key.
  const kept = keeper.keepFirst(withRequest(keeper.credentials(), request))
  if (!kept.persisted) return { kind: 'unreachable', trouble: agent.storage.notKept(kept, 'Nothing was sent') }
  agent.reached('enroll: request kept')
  return enrollCall(agent, join, request)
}

/** It was kept on another machine, or for another invitation: in an image whose clones would all have these keys. */
const dropCopied = ({ keeper, wireguard, log }: AgentParts, changed: 'join string' | 'machine'): void => {
  log.warn({ changed }, `A request kept here was made for another ${changed}: its keys are dropped and new ones made.`)
  // An agent that has been somebody keeps the key its peers know.
  if (keeper.credentials().identity === null) wireguard.keyRefused()
}

/** The node is active, perhaps as nobody else than us: the recovery key it registered then shows that (ruling 3). */
const proveWithFormerKey = ({ keeper }: AgentParts): void => {
  const { identity, request } = keeper.credentials()
  const former = identity?.recovery?.credential
  if (request?.purpose.kind !== 'enroll' || request.recoveryKey === null || former?.kind !== 'key') return
  const { keyType, keyPem } = former
  keeper.keep(withRequest(keeper.credentials(), { ...request, recoveryKey: { keyType, keyPem } }))
}

const accept = (agent: AgentParts, { identity, serverTime, wireguard }: Enrolled): Provided => {
  agent.lastConfig.forget()
  agent.sightings.enrolledUnder(identity.recovery?.trust.statement_keys ?? [])
  agent.wireguard.enrolled(wireguard, identity.profile.key_storage === 'file')
  const kept = agent.keeper.keep(enrolledAs(identity))
  agent.reached('enroll: identity kept')
  agent.episode.begunAnew('other')
  agent.board.success('enrollment', `Enrolled as ${identity.nodeId}, epoch ${identity.epoch}.`)
  agent.log.info(
    { node: identity.nodeId, epoch: identity.epoch, serial: identity.current.serial, persisted: kept.persisted },
    'enrolled',
  )
  // Without a durable certificate the join string is still needed: the repeated request gets the same answer with it.
  const undeleted = kept.persisted ? dropUsedJoin(agent.config, identity) : null
  if (undeleted !== null) agent.log.warn({ why: undeleted }, 'the used join string could not be deleted')
  const serverMs = parseIsoTime(serverTime)
  if (serverMs !== null) learnTime(agent, serverMs)
  return { kind: 'identity' }
}
