// Is the machine that holds this identity still there? Its open channels are pinged; three seconds of silence, twice,
// mean no (ruling 3). Where none is open the silence has begun already, when the last one ended or the plane started, and
// what is left of it is waited for: a node whose plane was just restarted gets the time to come back. One probe a node at
// a time, however many ask. Where its channel is on another replica, that one is asked: without its answer nobody can tell.

import type { NodeId } from '#domain/node.ts'
import type { Holder, Replicas } from '#plane/store/replicas.ts'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import type { Holding } from './holding.ts'
import { answerReplicas, askReplica, lookUpWithinMs, probeQuestion } from './replica-questions.ts'
import type { SessionRegistry } from './session-registry.ts'
import type { Silence } from './silence.ts'

export type ProbeAnswer = 'answered' | 'silent' | 'unknown'

export type Probe = (node: NodeId) => Promise<ProbeAnswer>

export const silenceMs = 3000
export const silentRounds = 2

export type ProbeDeps = {
  readonly sessions: SessionRegistry
  readonly silence: Silence
  readonly holding: Pick<Holding, 'inTurn' | 'elsewhere'>
  readonly replicas: Replicas
  readonly clock: Clock
  readonly timers: Timers
}

const withinMs = silentRounds * silenceMs + lookUpWithinMs

export const openProbe = ({ sessions, silence, holding, replicas, clock, timers }: ProbeDeps): Probe => {
  const round = (node: NodeId): Promise<ProbeAnswer> => {
    const open = [...sessions.of(node)]
    if (open.length === 0) return absence(node)
    return new Promise((resolve) => {
      const cancel = timers.after(silenceMs, () => resolve('silent'))
      for (const session of open) {
        session.onceHeard(() => {
          cancel()
          resolve('answered')
        })
        session.ping(clock.monotonicMs())
      }
    })
  }

  const absence = async (node: NodeId): Promise<'silent' | 'unknown'> => {
    const silentMs = await silence.of(node)
    if (silentMs === 'unknown') return silentMs
    const leftMs = silentRounds * silenceMs - silentMs
    if (leftMs > 0) await new Promise<void>((resolve) => void timers.after(Math.min(leftMs, silenceMs), resolve))
    return 'silent'
  }

  const here = async (node: NodeId): Promise<ProbeAnswer> => {
    const startedMs = clock.monotonicMs()
    for (let i = 0; i < silentRounds; i++) {
      const answer = await round(node)
      if (answer !== 'silent') return answer
    }
    // A channel that opened meanwhile was not pinged, and is an answer all the same.
    return sessions.of(node).some(({ heardMs }) => heardMs > startedMs) ? 'answered' : 'silent'
  }

  const there = async (node: NodeId, holder: Holder): Promise<ProbeAnswer> => {
    const asked = await askReplica(replicas, holder.replica, probeQuestion, { node }, withinMs)
    if (asked.kind === 'answer') return asked.value
    return asked.kind === 'gone' ? here(node) : 'unknown'
  }

  const ask = async (node: NodeId): Promise<ProbeAnswer> => {
    const before = sessions.of(node).length > 0 ? null : await holding.elsewhere(node)
    const answer = before === null ? await here(node) : await there(node, before)
    if (answer !== 'silent') return answer
    // It may have moved while it was probed, here or elsewhere, or before.
    const after = await holding.elsewhere(node)
    if (before !== null && sessions.of(node).length > 0) return 'answered'
    if (after === null || (before !== null && after.number === before.number)) return 'silent'
    return there(node, after)
  }

  const asking = oneAtATime(ask)
  const pinging = oneAtATime(here)
  answerReplicas(replicas, probeQuestion, async ({ node }) => {
    await holding.inTurn(node, async () => {})
    const answer = await pinging(node)
    if (answer === 'unknown') throw new Error('another replica does not say whether the node was there')
    return answer
  })
  return asking
}

const oneAtATime = (ask: Probe): Probe => {
  const underWay = new Map<NodeId, Promise<ProbeAnswer>>()
  return (node) => {
    const running = underWay.get(node)
    if (running !== undefined) return running
    const started = ask(node).finally(() => underWay.delete(node))
    underWay.set(node, started)
    return started
  }
}
