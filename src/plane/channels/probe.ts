// Is the machine that holds this identity still there? Its open channels are pinged; three seconds of silence, twice,
// mean no (ruling 3). Where none is open the silence has begun already, when the last one ended or the plane started, and
// what is left of it is waited for: a node whose plane was just restarted gets the time to come back. One probe a node at
// a time, however many ask.

import type { NodeId } from '#domain/node.ts'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import type { Presence } from './presence.ts'
import type { SessionRegistry } from './session-registry.ts'

export type Probe = (node: NodeId) => Promise<'answered' | 'silent'>

export const silenceMs = 3000
export const silentRounds = 2

export type ProbeDeps = {
  readonly sessions: SessionRegistry
  readonly presence: Pick<Presence, 'silentMs'>
  readonly clock: Clock
  readonly timers: Timers
}

export const openProbe = ({ sessions, presence, clock, timers }: ProbeDeps): Probe => {
  const underWay = new Map<NodeId, Promise<'answered' | 'silent'>>()

  const round = (node: NodeId): Promise<'answered' | 'silent'> => {
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

  const absence = async (node: NodeId): Promise<'silent'> => {
    const leftMs = silentRounds * silenceMs - (presence.silentMs(node) ?? 0)
    if (leftMs > 0) await new Promise<void>((resolve) => void timers.after(Math.min(leftMs, silenceMs), resolve))
    return 'silent'
  }

  const ask = async (node: NodeId): Promise<'answered' | 'silent'> => {
    const startedMs = clock.monotonicMs()
    for (let i = 0; i < silentRounds; i++) {
      if ((await round(node)) === 'answered') return 'answered'
    }
    // A channel that opened meanwhile was not pinged, and is an answer all the same.
    return sessions.of(node).some(({ heardMs }) => heardMs > startedMs) ? 'answered' : 'silent'
  }

  return (node) => {
    const running = underWay.get(node)
    if (running !== undefined) return running
    const started = ask(node).finally(() => underWay.delete(node))
    underWay.set(node, started)
    return started
  }
}
