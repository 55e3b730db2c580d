// Keeps a channel open: reconnects with full jitter, and after a renewal opens the new one before it closes the old.

import type { AgentParts } from '../agent-deps.ts'
import { fullJitterMs, notBeforeMs } from '../backoff.ts'
import { fallenBack, type Identity } from '../identity/credentials.ts'
import { markProven } from '../identity/report-storage.ts'
import { pause } from '../pause.ts'
import { addresses, under } from '../plane-client.ts'
import { afterRefusedUse, type SessionEnd } from '../session-end.ts'
import { trouble } from '../trouble.ts'
import { channelUser } from './apply.ts'
import { openChannel, type Channel, type ChannelEnd } from './channel.ts'

const firstMs = 1_000
const capMs = 30_000
const slowMs = 60_000
const settledMs = 10_000

/** Ends only when the agent is stopped or the plane does not take the identity any more. */
export const keepChannel = async (agent: AgentParts, identityNow: () => Identity): Promise<SessionEnd> => {
  const user = channelUser(agent)
  let draining: Channel | null = null
  let failures = 0
  let place = 0
  try {
    while (!agent.signal.aborted) {
      const identity = identityNow()
      const url = channelUrl(identity, place)
      const channel = openChannel(agent, identity, url, user)
      const closeIfStopped = (): void => channel.close()
      agent.signal.addEventListener('abort', closeIfStopped)
      const sinceMs = agent.clock.monotonicMs()
      if ((await channel.opened) !== null) {
        nowWorks(agent, identity, url)
        draining?.close()
        draining = null
        if (await outlivedByNewer(agent, channel, identity.current.serial)) draining = channel
        // One that is cut as soon as it is open is no success: a plane in trouble would be asked twice a second.
        if (draining === channel || agent.clock.monotonicMs() - sinceMs > settledMs) failures = 0
      }
      if (draining !== channel) {
        const end = await channel.ended
        const next = afterEnd(agent, end, failures)
        if (next.kind !== 'wait') return next
        failures += 1
        if (elsewhereMayAnswer(end)) place += 1
        await pause(agent.timers, next.waitMs, agent.signal)
      }
      agent.signal.removeEventListener('abort', closeIfStopped)
    }
    return { kind: 'stopped' }
  } finally {
    draining?.close()
    agent.board.channel(false, null)
  }
}

/** One address after the other; the one that worked is kept until it does not. */
const channelUrl = (identity: Identity, place: number): string => {
  const bases = addresses(identity.endpoints.stream, identity.origin.url.replace(/^https:/, 'wss:'))
  const base = bases[place % bases.length] ?? identity.origin.url
  return under(base.replace(/^https:/, 'wss:'), `/v1/nodes/${identity.nodeId}/channel`)
}

const elsewhereMayAnswer = (end: ChannelEnd): boolean => end.kind === 'failed' && end.failure.kind !== 'refused'

const nowWorks = (agent: AgentParts, { current }: Identity, url: string): void => {
  agent.log.info({ url, serial: current.serial }, 'channel open')
  agent.board.channel(true, url)
  agent.board.clear('channel')
  markProven(agent, current.serial)
}

/** Waits for the end of the channel, or for a renewal that makes it the older one. */
const outlivedByNewer = async (agent: AgentParts, channel: Channel, serial: string): Promise<boolean> => {
  const over = new AbortController()
  const replaced = agent.keeper.replaced(serial, AbortSignal.any([agent.signal, over.signal])).then(() => true)
  const newer = await Promise.race([replaced, channel.ended.then(() => false)])
  over.abort()
  return newer && !agent.signal.aborted
}

type AfterEnd = SessionEnd | { readonly kind: 'wait'; readonly waitMs: number }

const afterEnd = (agent: AgentParts, end: ChannelEnd, failures: number): AfterEnd => {
  agent.board.channel(false, null)
  if (agent.signal.aborted) return { kind: 'stopped' }
  const unit = agent.random.unit()
  const soon = fullJitterMs(failures, firstMs, capMs, unit)
  const what =
    end.kind === 'closed'
      ? trouble(
          'channel_closed',
          `The channel ended (${end.closing ?? end.why}).`,
          'The agent connects again by itself',
        )
      : end.failure.kind === 'stopped'
        ? trouble('endpoint_unreachable', 'The channel was cut.', 'The agent connects again by itself')
        : end.failure.trouble
  const wait = (waitMs: number): AfterEnd => {
    agent.log.warn({ code: what.code, next: what.next, waitMs }, what.text)
    agent.board.trouble('channel', what, agent.clock.nowMs() + waitMs)
    return { kind: 'wait', waitMs }
  }
  if (end.kind === 'closed' || end.failure.kind !== 'refused') return wait(soon)
  const { code, retryAfterMs } = end.failure
  switch (afterRefusedUse(code)) {
    case 'soon':
      return wait(notBeforeMs(soon, retryAfterMs, unit))
    case 'slow':
      return wait(notBeforeMs(Math.round(slowMs * (0.5 + unit)), retryAfterMs, unit))
    case 'unknown-certificate':
      return wentBack(agent) ? wait(soon) : { kind: 'rejoin', trouble: what }
    case 'rejoin':
      return { kind: 'rejoin', trouble: what }
    case 'revoked':
      return { kind: 'revoked', trouble: what }
  }
}

/** A new certificate that never worked and that the plane does not know: the one before is still here. */
const wentBack = ({ keeper, log }: AgentParts): boolean => {
  const { identity } = keeper.credentials()
  const former = identity === null ? null : fallenBack(identity)
  if (former === null) return false
  log.warn(
    { serial: former.current.serial },
    'the plane does not know the new certificate; going back to the one before',
  )
  keeper.keep({ identity: former, request: null })
  return true
}
