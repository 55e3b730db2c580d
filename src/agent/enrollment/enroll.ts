// With no certificate the agent enrols, and goes on trying for as long as trying can help.

import type { JoinString } from '#wire/join-string.ts'
import { isoTime, parseIsoTime } from '#platform/clock.ts'
import type { AgentParts } from '../agent-deps.ts'
import { enrolledAs, requestFor, withRequest } from '../identity/credentials.ts'
import { newKeyRequest } from '../keys/key-request.ts'
import { pause } from '../pause.ts'
import type { PlaneFailure } from '../plane-failure.ts'
import type { Provided } from '../identity/provider.ts'
import { trouble } from '../trouble.ts'
import { enrollCall, type Enrolled } from './enroll-call.ts'
import { dropUsedJoin } from './join-source.ts'
import { nextTry } from './next-try.ts'

export const enroll = async (agent: AgentParts, join: JoinString): Promise<Provided> => {
  for (let attempt = 0; !agent.signal.aborted; attempt++) {
    const tried = await tryOnce(agent, join)
    if (tried.kind === 'enrolled') return accept(agent, tried)
    if (tried.kind === 'stopped') break
    const next = nextTry(tried, attempt, agent.random.unit())
    if (next.kind === 'give-up') return { kind: 'failed', outcome: next.outcome }
    if (next.newKey) agent.keeper.keep(withRequest(agent.keeper.credentials(), null))
    const nextTryAtMs = agent.clock.nowMs() + next.waitMs
    agent.board.trouble('enrollment', tried.trouble, nextTryAtMs)
    agent.log.warn(
      { code: tried.trouble.code, next: tried.trouble.next, nextTry: isoTime(nextTryAtMs) },
      `${tried.trouble.text} ${next.intent}`.trim(),
    )
    await pause(agent.timers, next.waitMs, agent.signal)
  }
  return { kind: 'failed', outcome: { kind: 'stopped' } }
}

const tryOnce = async (agent: AgentParts, join: JoinString): Promise<Enrolled | PlaneFailure> => {
  const { keeper, config, clock } = agent
  const purpose = { kind: 'enroll' } as const
  const open = requestFor(keeper.credentials(), purpose, config.keyType)
  if (open !== null) return enrollCall(agent, join, open)
  const request = newKeyRequest(purpose, config.keyType, config.nodeId ?? 'muster-agent', clock.nowMs(), null)
  // Durable before it is sent: after a crash this very request is repeated, and the token is not lost to another key.
  const kept = keeper.keepFirst(withRequest(keeper.credentials(), request))
  if (kept.persisted) return enrollCall(agent, join, request)
  const text = `The state folder cannot be written, so nothing was sent: ${kept.detail}`
  return {
    kind: 'unreachable',
    trouble: trouble('disk_trouble', text, `Make ${config.stateFolder} writable, or make room on its disk`),
  }
}

const skewWorthSayingMs = 300_000

const accept = (agent: AgentParts, { identity, serverTime }: Enrolled): Provided => {
  agent.lastConfig.forget()
  const kept = agent.keeper.keep(enrolledAs(identity))
  agent.board.clear('enrollment')
  agent.log.info(
    { node: identity.nodeId, epoch: identity.epoch, serial: identity.current.serial, persisted: kept.persisted },
    'enrolled',
  )
  // Without a durable certificate the join string is still needed: the repeated request gets the same answer with it.
  const undeleted = kept.persisted ? dropUsedJoin(agent.config, identity) : null
  if (undeleted !== null) agent.log.warn({ why: undeleted }, 'the used join string could not be deleted')
  const serverMs = parseIsoTime(serverTime)
  const nowMs = agent.clock.nowMs()
  if (serverMs !== null && Math.abs(serverMs - nowMs) > skewWorthSayingMs) {
    const text = `The plane's clock says ${serverTime}, this machine's ${isoTime(nowMs)}.`
    agent.board.trouble(
      'clock',
      trouble('clock_skew', text, 'Set the clock of this machine: timedatectl set-ntp true'),
      null,
    )
    agent.log.warn(text)
  }
  return { kind: 'identity' }
}
