// Keeps a channel open: passes events to the rotation and carries out its actions.

import type { Cancel } from '#platform/timers.ts'
import { afterRefusal } from '#agent/link/after-refusal.ts'
import type { AgentParts, AgentStep } from '#agent/core/agent-parts.ts'
import { fallenBack, type Generation, type Identity } from '#agent/state/credentials.ts'
import { markProven } from '#agent/identity/report-storage.ts'
import { refusalOfClosing, type Refused } from '#agent/link/plane-failure.ts'
import type { RunEnd } from '#agent/core/outcome.ts'
import { trouble, type Trouble } from '#agent/core/trouble.ts'
import { channelUser, type ApplyingAgent } from './apply.ts'
import { addresses, addressTurns, under, type AddressTurns, type CallingAgent } from '#agent/link/plane-client.ts'
import { openChannel, type Channel, type ChannelEnd } from './channel.ts'
import type { ChannelId, Credential, Ended, RotationAction, RotationEvent, RotationState } from './rotation-state.ts'
import { rotate, unconnected } from './rotation.ts'
import { pathOf } from '#wire/core/endpoint.ts'
import { identityApi } from '#wire/identity/identity-api.ts'

type ConnectedAgent = CallingAgent & ApplyingAgent & Pick<AgentParts, 'nudge' | 'reached'>

type Held = { readonly channel: Channel; readonly identity: Identity; readonly url: string }

const lookEveryMs = 1_000

/** Ends only when the agent is stopped or the plane no longer accepts the identity. */
export const keepChannel = async (agent: ConnectedAgent, identityNow: () => Identity): Promise<RunEnd> => {
  const { keeper, outbox, overlay, programs, tasks, record, log, clock, timers } = agent
  const user = channelUser(agent)
  const over = new AbortController()
  const done = Promise.withResolvers<RunEnd>()
  const held = new Map<ChannelId, Held>()
  let state: RotationState = unconnected(credentialOf(identityNow().current))
  let lastTrouble: Trouble = notYet
  let lastRetryAfterMs = 0
  const turns = addressTurns()
  let cancelWait: Cancel = () => {}

  const happened = (event: RotationEvent): void => {
    try {
      const moment = { nowMs: clock.nowMs(), monotonicMs: clock.monotonicMs(), unit: agent.random.unit() }
      const before = state
      const { state: next, actions } = rotate(before, event, moment)
      state = next
      if ('active' in before && !('active' in next)) stopSending()
      for (const step of stepsBefore(before, event)) agent.reached(step)
      for (const action of actions) obey(action)
      for (const step of stepsAfter(before, next)) agent.reached(step)
      // Nothing is left to prove: the failure of the newer certificate is resolved.
      if (before.kind === 'proving' && next.kind === 'steady') recordOpen(next.active.channel)
    } catch (bug) {
      done.reject(bug)
    }
  }

  const open = (id: ChannelId): void => {
    // The newest there is by now, should another have appeared in this very turn.
    const identity = identityNow()
    const url = channelUrl(identity, turns)
    const channel = openChannel(agent, identity, url, user)
    held.set(id, { channel, identity, url })
    void channel.opened.then((hello) => {
      if (hello !== null) happened({ kind: 'opened', channel: id })
    })
    channel.ended.then((end) => ended(id, end)).catch(done.reject)
  }

  const ended = (id: ChannelId, end: ChannelEnd): void => {
    held.delete(id)
    if (elsewhereMayAnswer(end)) turns.failed()
    if (isQuarantined(end)) agent.wireguard.removePeers()
    lastTrouble = troubleOf(end)
    const why = because(end, identityNow())
    lastRetryAfterMs = why.retryAfterMs ?? 0
    happened({ kind: 'ended', channel: id, because: why })
  }

  const check = async (id: ChannelId, withinMs: number): Promise<void> => {
    if ((await held.get(id)?.channel.answers(withinMs)) === true) happened({ kind: 'healthy', channel: id })
  }

  const recordOpen = (id: ChannelId): void => {
    const serving = held.get(id)
    if (serving === undefined) return
    record.channel(true, serving.url)
    record.clear('channel')
  }
  const stopSending = (): void => {
    outbox.use(null)
    overlay.use(null)
    programs.use(null)
    tasks.use(null)
    record.channel(false, null)
  }

  const swap = (id: ChannelId): void => {
    const to = held.get(id)
    if (to === undefined) return
    outbox.use((body) => to.channel.report(body))
    overlay.use(to.channel)
    programs.use(to.channel)
    tasks.use(to.channel)
    recordOpen(id)
    log.info({ url: to.url, serial: to.identity.current.serial }, 'channel open')
    markProven(agent, to.identity.current.serial)
  }

  const drain = (id: ChannelId, withinMs: number): void => {
    const cancel = timers.after(withinMs, () => happened({ kind: 'drain-deadline', channel: id }), 'background')
    void held.get(id)?.channel.ended.then(cancel, cancel)
    void outbox.settled(over.signal).then(() => happened({ kind: 'drained', channel: id }))
  }

  const wait = (ms: number): void => {
    cancelWait()
    cancelWait = timers.after(ms, () => happened({ kind: 'tick' }))
    log.warn({ code: lastTrouble.code, next: lastTrouble.next, waitMs: ms }, lastTrouble.text)
    record.trouble('channel', lastTrouble, clock.nowMs() + ms)
  }

  const giveUp = (serial: string): void => {
    const { identity } = keeper.credentials()
    const former = identity === null || identity.current.serial !== serial ? null : fallenBack(identity)
    if (former === null) return
    log.warn(
      { serial, code: lastTrouble.code },
      'the plane refuses the new certificate; falling back to the previous one',
    )
    keeper.keep({ identity: former, request: null })
  }

  const obey = (action: RotationAction): void => {
    switch (action.kind) {
      case 'open':
        cancelWait()
        return open(action.channel)
      case 'check':
        return void check(action.channel, action.withinMs)
      case 'swap':
        return swap(action.channel)
      case 'drain':
        return drain(action.channel, action.withinMs)
      case 'close':
        return held.get(action.channel)?.channel.close()
      case 'wait':
        return wait(action.ms)
      case 'give-up':
        return giveUp(action.serial)
      case 'end':
        return done.resolve(
          action.how === 'stopped'
            ? { kind: 'stopped' }
            : { kind: action.how, trouble: lastTrouble, afterMs: lastRetryAfterMs },
        )
    }
  }

  const watchRenewals = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const { serial } = identityNow().current
      await keeper.replaced(serial, over.signal)
      if (!over.signal.aborted) happened({ kind: 'appeared', newest: credentialOf(identityNow().current) })
    }
  }
  const watchNudges = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await agent.nudge.wait(over.signal)
      if (!over.signal.aborted) happened({ kind: 'nudged' })
    }
  }
  /** By the clock and not by a timer: no timer lasts as long as a certificate may. */
  let lastExpired: string | null = null
  const lookForExpiry = (): void => {
    if (!('active' in state)) return
    const { serial, notAfterMs } = state.active.credential
    if (serial === lastExpired || clock.nowMs() < notAfterMs) return
    lastExpired = serial
    happened({ kind: 'expired', serial })
  }

  const stop = (): void => happened({ kind: 'stopped' })
  agent.signal.addEventListener('abort', stop)
  const cancelLooks = timers.every(lookEveryMs, lookForExpiry)
  watchRenewals().catch(done.reject)
  watchNudges().catch(done.reject)
  happened(agent.signal.aborted ? { kind: 'stopped' } : { kind: 'tick' })
  try {
    return await done.promise
  } finally {
    over.abort()
    cancelWait()
    cancelLooks()
    agent.signal.removeEventListener('abort', stop)
    const last = [...held.values()].map(({ channel }) => channel)
    for (const channel of last) channel.close()
    await Promise.allSettled(last.map((channel) => channel.ended))
    stopSending()
  }
}

const notYet = trouble('endpoint_unreachable', 'There has been no channel yet.', 'The agent connects automatically')

const channelUrl = ({ nodeId, endpoints, origin }: Identity, turns: AddressTurns): string => {
  const base = turns.next(addresses(endpoints.stream, origin.url.replace(/^https:/, 'wss:')))
  return under((base ?? origin.url).replace(/^https:/, 'wss:'), pathOf(identityApi.channel, { id: nodeId }))
}

const credentialOf = ({ serial, notAfterMs }: Generation): Credential => ({ serial, notAfterMs })

const elsewhereMayAnswer = (end: ChannelEnd): boolean =>
  end.kind === 'failed' && (end.failure.kind === 'unreachable' || end.failure.kind === 'untrusted')

/** A refusal of a plane that has proved itself, while it cuts the channel or refuses another one. */
const isQuarantined = (end: ChannelEnd): boolean => {
  if (end.kind === 'closed') return end.closing?.code === 'NODE_QUARANTINED'
  return end.failure.kind === 'refused' && end.failure.code === 'NODE_QUARANTINED'
}

/** Of a swap, not of a first channel. */
const stepsBefore = (before: RotationState, event: RotationEvent): readonly AgentStep[] => {
  const isPassive = before.kind === 'proving' && 'channel' in event && before.passive?.channel === event.channel
  if (!isPassive) return []
  if (event.kind === 'opened') return ['swap: passive open']
  return event.kind === 'healthy' ? ['swap: passive healthy'] : []
}

const stepsAfter = (before: RotationState, next: RotationState): readonly AgentStep[] => {
  if (before.kind === 'proving' && next.kind === 'draining') return ['swap: swapped']
  return before.kind === 'draining' && next.kind === 'steady' ? ['swap: old one closed'] : []
}

/** The plane refuses the certificate, not the node: the previous one may still be good. */
const againstCertificate: ReadonlySet<Refused['retry']> = new Set([
  'certificate-unknown',
  'certificate-denied',
  'certificate-expired',
])

/** What the plane has against us, whether it refused a channel or ended it; null: nothing that we know of. */
const refusalOf = (end: ChannelEnd): Refused | null => {
  if (end.kind === 'failed') return end.failure.kind === 'refused' ? end.failure : null
  // Of all reasons to end a channel the one after which connecting again is of no use.
  return end.closing?.code === 'ISSUER_WITHDRAWN' ? refusalOfClosing(end.closing) : null
}

const because = (end: ChannelEnd, identity: Identity): Ended => {
  const refused = refusalOf(end)
  const mayGoBack = refused !== null && againstCertificate.has(refused.retry)
  const former = mayGoBack ? (fallenBack(identity)?.current ?? null) : null
  return {
    use: refused === null ? 'soon' : afterRefusal[refused.retry].use,
    retryAfterMs: refused?.retryAfterMs ?? null,
    former: former === null ? null : credentialOf(former),
  }
}

const troubleOf = (end: ChannelEnd): Trouble => {
  const next = 'The agent reconnects automatically'
  const refused = refusalOf(end)
  if (refused !== null) return refused.trouble
  if (end.kind === 'closed')
    return trouble('channel_closed', `The channel ended (${end.closing?.code ?? end.why}).`, next)
  return end.failure.kind === 'stopped'
    ? trouble('endpoint_unreachable', 'The channel was cut.', next)
    : end.failure.trouble
}
