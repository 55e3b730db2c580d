// How long has the holder of this identity been silent (ruling 3)? Its open channels are pinged, twice for three seconds; any frame
// is an answer. While a channel is open its silence counts from the last frame on it, so it goes on counting between two calls.
// Without a channel it counts from the end of the last one, or from the start of the plane: a node whose plane was just restarted
// gets the time to come back. There is one probe a node at a time, for all callers. Where the channel is on another replica, that
// one is asked: without its answer the silence is unknown.

import type { NodeId } from '#domain/core/node.ts'
import type { Hold, Replicas } from '#plane/store/contract/replicas.ts'
import { defaultProbeSilenceMs } from '#domain/core/profile.ts'
import { sleep } from '#platform/timers.ts'
import type { Holding } from '#plane/sessions/holding.ts'
import { answerReplicas, askReplica, lookUpWithinMs, probeQuestion } from '#plane/cluster/replica-questions.ts'
import type { SessionRegistry } from '#plane/sessions/session-registry.ts'
import type { Session } from '#plane/sessions/session.ts'
import type { Silence } from './silence.ts'
import type { Core } from '#plane/core/core.ts'

/** `silentMs`: so far; it may be less than what was asked for. `closedByHolder`: no channel went silent, the node closed it. */
export type ProbeAnswer = 'answered' | 'unknown' | { readonly silentMs: number; readonly closedByHolder?: true }

/** `enoughMs`: the silence that the caller needs. Answers within seconds, however long that is. */
export type Probe = (node: NodeId, enoughMs: number) => Promise<ProbeAnswer>

export const silenceMs = 3000
export const silentRounds = 2

export type ProbeParts = {
  readonly sessions: SessionRegistry
  readonly silence: Silence
  readonly holding: Pick<Holding, 'inTurn' | 'elsewhere'>
  readonly replicas: Replicas
}

/** What a call is held for. */
const longestMs = silentRounds * silenceMs
const withinMs = longestMs + lookUpWithinMs

export const openProbe = (
  { clock, timers }: Pick<Core, 'clock' | 'timers'>,
  { sessions, silence, holding, replicas }: ProbeParts,
): Probe => {
  const round = (open: readonly Session[]): Promise<'answered' | 'silent'> =>
    new Promise((resolve) => {
      const cancel = timers.after(silenceMs, () => resolve('silent'))
      for (const session of open) {
        session.onceReceived(() => {
          cancel()
          resolve('answered')
        })
        session.ping(clock.monotonicMs())
      }
    })

  /** Waits for the rest of the silence if it is short; otherwise the caller comes back. */
  const absence = async (node: NodeId, enoughMs: number): Promise<'silent' | 'unknown'> => {
    const silentMs = await silence.of(node)
    if (silentMs === 'unknown') return silentMs
    const leftMs = enoughMs - silentMs
    if (leftMs > 0 && leftMs <= longestMs) {
      await sleep(timers, Math.min(leftMs, silenceMs))
    }
    return 'silent'
  }

  const silentFor = async (node: NodeId): Promise<ProbeAnswer> => {
    const open = sessions.of(node)
    if (open.length > 0)
      return { silentMs: clock.monotonicMs() - Math.max(...open.map(({ lastReceivedMs }) => lastReceivedMs)) }
    const silentMs = await silence.of(node)
    if (silentMs === 'unknown') return silentMs
    return (await silence.closedByHolder(node)) ? { silentMs, closedByHolder: true } : { silentMs }
  }

  const here = async (node: NodeId, enoughMs: number): Promise<ProbeAnswer> => {
    const startedMs = clock.monotonicMs()
    for (let i = 0; i < silentRounds; i++) {
      const open = [...sessions.of(node)]
      const answer = open.length === 0 ? await absence(node, enoughMs) : await round(open)
      if (answer !== 'silent') return answer
    }
    // A channel that opened meanwhile was not pinged, and is an answer all the same.
    return sessions.of(node).some(({ lastReceivedMs }) => lastReceivedMs > startedMs) ? 'answered' : silentFor(node)
  }

  const there = async (node: NodeId, hold: Hold, enoughMs: number): Promise<ProbeAnswer> => {
    const asked = await askReplica(replicas, hold.replica, probeQuestion, { node, enoughMs }, withinMs)
    if (asked.kind !== 'answer') return asked.kind === 'gone' ? here(node, enoughMs) : 'unknown'
    if (asked.value === 'answered') return asked.value
    // A replica of 0.2.0 answers only that two pings were not answered.
    return { silentMs: asked.value === 'silent' ? longestMs : asked.value }
  }

  const ask: Probe = async (node, enoughMs) => {
    const before = sessions.of(node).length > 0 ? null : await holding.elsewhere(node)
    const answer = before === null ? await here(node, enoughMs) : await there(node, before, enoughMs)
    if (typeof answer === 'string') return answer
    // It may have moved while it was probed, here or elsewhere, or before.
    const after = await holding.elsewhere(node)
    if (before !== null && sessions.of(node).length > 0) return 'answered'
    if (after === null || (before !== null && after.number === before.number)) return answer
    return there(node, after, enoughMs)
  }

  const asking = oneAtATime(ask)
  const pinging = oneAtATime(here)
  answerReplicas(replicas, probeQuestion, async ({ node, enoughMs }) => {
    await holding.inTurn(node, async () => {})
    const answer = await pinging(node, enoughMs ?? defaultProbeSilenceMs)
    if (answer === 'unknown') throw new Error('another replica does not say whether the node was there')
    if (answer === 'answered' || enoughMs !== undefined) return answer === 'answered' ? answer : answer.silentMs
    // A replica of 0.2.0 asks, which admits after any silence: it is left without an answer for as long as it must not.
    if (answer.silentMs < defaultProbeSilenceMs) throw new Error('the node has not been silent for long enough')
    return 'silent'
  })
  return asking
}

const oneAtATime = (ask: Probe): Probe => {
  const underWay = new Map<NodeId, Promise<ProbeAnswer>>()
  return (node, enoughMs) => {
    const running = underWay.get(node)
    if (running !== undefined) return running
    const started = ask(node, enoughMs).finally(() => underWay.delete(node))
    underWay.set(node, started)
    return started
  }
}
