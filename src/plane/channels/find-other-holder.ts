// Does another process than the caller hold this identity, now? Two processes are told apart by their instance, which a
// copied folder does not have. A process that names its instance names it always, so a caller that names none is not that
// process; a channel that names none may be anybody's.

import type { NodeId } from '#domain/node.ts'
import type { AwaitReturn, FindOtherHolder, LiveHolder } from '#plane/flows/live-holder.ts'
import type { Clock } from '#platform/clock.ts'
import type { Timers } from '#platform/timers.ts'
import type { Presence } from './presence.ts'
import { silenceMs, silentRounds } from './probe.ts'
import type { SessionRegistry } from './session-registry.ts'
import type { Session } from './session.ts'

export type OtherHolderDeps = {
  readonly sessions: Pick<SessionRegistry, 'of'>
  readonly clock: Clock
  readonly timers: Timers
}

export const openFindOtherHolder = ({ sessions, clock, timers }: OtherHolderDeps): FindOtherHolder => {
  // One probe a channel at a time, however many ask.
  const underWay = new Map<Session, Promise<boolean>>()

  const heard = (session: Session): Promise<boolean> =>
    new Promise((resolve) => {
      const cancel = timers.after(silenceMs, () => resolve(false))
      session.onceHeard(() => {
        cancel()
        resolve(true)
      })
      session.ping(clock.monotonicMs())
    })

  const ask = async (session: Session): Promise<boolean> => {
    for (let round = 0; round < silentRounds && session.alive; round++) {
      if (await heard(session)) return true
    }
    return false
  }

  const answers = (session: Session): Promise<boolean> => {
    const running = underWay.get(session)
    if (running !== undefined) return running
    const started = ask(session).finally(() => underWay.delete(session))
    underWay.set(session, started)
    return started
  }

  return async (node, instance) => {
    const others = otherSessions(sessions, node, instance)
    if (others.length === 0) return null
    const found = await Promise.all(others.map(async (session) => ((await answers(session)) ? session : null)))
    const live = found.find((session) => session !== null && session.alive) ?? null
    return live === null ? null : holderOf(live)
  }
}

/** The channels of the node that another process has open, whether it answers or not. */
export const otherSessions = (
  sessions: Pick<SessionRegistry, 'of'>,
  node: NodeId,
  instance: string | null,
): readonly Session[] => sessions.of(node).filter(({ evidence }) => evidence !== null && evidence.instance !== instance)

/** As long as a probe would wait: the silence began when the last channel ended, or the plane started. */
export const openAwaitReturn =
  ({ presence, timers }: { readonly presence: Pick<Presence, 'silentMs'>; readonly timers: Timers }): AwaitReturn =>
  async (node) => {
    const silentMs = presence.silentMs(node)
    const leftMs = silentMs === null ? 0 : silentRounds * silenceMs - silentMs
    if (leftMs <= 0) return false
    await new Promise<void>((resolve) => void timers.after(leftMs, resolve))
    return true
  }

const holderOf = ({ evidence, principal }: Session): LiveHolder => ({
  evidence,
  source: principal.source,
  serial: principal.proof.serial,
})
