// Long-polls of nodes that have no channel. A node has one session for all of its calls (channel/open-poll.ts): while a call waits it
// takes tasks, and when the call is answered the session stays until the next one, or until the node has been silent for too long.

import type { NodeId } from '#domain/core/node.ts'
import { sourceProcess, type NodePrincipal } from '#domain/core/principal.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { refusals, type RefusalCode } from '#domain/core/refusal-table.ts'
import type { Core } from '#plane/core/core.ts'
import { takeTurnsByKey } from '#plane/core/turns.ts'
import type { Patience, Session, SessionSocket } from '#plane/sessions/session.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { mostWaitSeconds } from '#wire/tasks/task-node-api.ts'
import type { TaskDispatcher } from './dispatcher.ts'

export type Poller = {
  readonly principal: NodePrincipal
  readonly evidence: AgentEvidence | null
  readonly correlation: string
}

type Opening = Poller & { readonly process: string; readonly patience: Patience; readonly socket: SessionSocket }

export type PollParts = {
  readonly dispatcher: TaskDispatcher
  open(opening: Opening): Promise<Session | Refusal>
}

/** Envelopes, or why there are none any more. */
export type PollAnswer = readonly string[] | Refusal

export type TaskPolls = { wait(poller: Poller, waitMs: number): Promise<PollAnswer> }

/** Not pinged while a call may wait, since that answers it; and then there is time to ask again. */
const patience: Patience = {
  pingEveryMs: (mostWaitSeconds + 5) * 1000,
  pongWithinMs: (mostWaitSeconds + 30) * 1000,
}

type Poll = {
  readonly session: Session
  /** Ends the call that waits; null: none does. */
  answer: ((answer: PollAnswer) => void) | null
  readonly collected: string[]
}

export const openTaskPolls = ({ store, clock, timers }: Core, { dispatcher, open }: PollParts): TaskPolls => {
  const polls = new Map<NodeId, Poll>()
  const inTurn = takeTurnsByKey()

  /** Of a call that waits. Without envelopes it says that the node may ask again. */
  const answerNow = (poll: Poll, answer: PollAnswer): void => {
    const { answer: end } = poll
    poll.answer = null
    dispatcher.left(poll.session)
    end?.(answer)
  }

  /** In a later turn, so that what is sent in this one goes along. Without a call it waits for the next. */
  const handOver = (poll: Poll): void => {
    if (poll.collected.length === 0) return
    timers.soon(() => {
      if (poll.answer !== null && poll.collected.length > 0) answerNow(poll, poll.collected.splice(0))
    })
  }

  const opened = async (poller: Poller): Promise<Poll | Refusal> => {
    let poll: Poll | null = null
    let why: Refusal = refuse('UNAVAILABLE', 'the session has ended: ask again')
    const over = (): void => {
      if (poll === null) return
      if (polls.get(poller.principal.id) === poll) polls.delete(poller.principal.id)
      answerNow(poll, why)
    }
    const socket = pollSocket({
      said: (code, detail) => void (why = endedBy(code, detail)),
      pinged: () => void (poll !== null && answerNow(poll, [])),
      over,
    })
    const session = await open({ ...poller, process: processOf(poller), patience, socket })
    if (isRefusal(session)) return session
    // It may have ended in the turn that it was opened in.
    if (!session.alive) return why
    poll = { session, answer: null, collected: [] }
    const before = polls.get(poller.principal.id)
    polls.set(poller.principal.id, poll)
    before?.session.end('REPLACED', 'a newer long-poll of this node is open')
    return poll
  }

  const ownPoll = (poller: Poller): Poll | null => {
    const known = polls.get(poller.principal.id)
    return known !== undefined && isSameHolder(known.session, poller) ? known : null
  }

  /** In turn with other calls of the same process only: its own call is what answers the question whether it is there. */
  const pollOf = (poller: Poller): Promise<Poll | Refusal> =>
    inTurn(`${poller.principal.id} ${processOf(poller)}`, async () => ownPoll(poller) ?? opened(poller))

  return {
    async wait(poller, waitMs) {
      const poll = await pollOf(poller)
      if (isRefusal(poll)) return poll
      poll.session.received(clock.monotonicMs())
      store.observe(poller.principal.id, { lastSeenMs: clock.nowMs() })
      // Of several calls at once the newest waits.
      answerNow(poll, [])
      const { promise, resolve } = Promise.withResolvers<PollAnswer>()
      poll.answer = resolve
      // Which tasks it has it does not say. What was handed out is handed out again after a while, since the answer may have been lost.
      const looked = dispatcher.greeted(poll.session, new Set(), (envelope) => {
        poll.collected.push(envelope)
        handOver(poll)
      })
      handOver(poll)
      const cancel = timers.after(waitMs, () => {
        // A call that does not wait is answered with what there is.
        void looked.then(() => {
          if (poll.answer === resolve && poll.collected.length === 0) answerNow(poll, [])
        })
      })
      return promise.finally(cancel)
    },
  }
}

/** Each call of a process without evidence has a connection of its own: the address is what its calls have in common. */
const processOf = ({ principal, evidence }: Poller): string =>
  evidence === null ? sourceProcess(principal.source) : evidence.instance

/** A renewed certificate opens a session of its own, as with channels; and so does a call that comes back from another replica. */
const isSameHolder = ({ alive, drainedAtMs, process, principal }: Session, poller: Poller): boolean =>
  alive &&
  drainedAtMs === null &&
  principal.credential.serial === poller.principal.credential.serial &&
  principal.credential.issuer === poller.principal.credential.issuer &&
  process === processOf(poller)

const endedBy = (code: string, detail: string | null): Refusal =>
  Object.hasOwn(refusals, code)
    ? refuse(code as RefusalCode, detail)
    : { ...refuse('UNAVAILABLE', detail), retryAfterMs: 1000 }

type PollEvents = {
  /** Why the session ends. */
  said(code: string, detail: string | null): void
  pinged(): void
  over(): void
}

/** A long-poll says nothing but envelopes, and why it ends. A node that is asked for a sign of life is answered: it asks again. */
const pollSocket = ({ said, pinged, over }: PollEvents): SessionSocket => ({
  bufferedAmount: 0,
  send(frame: string) {
    const { type, body } = JSON.parse(frame) as { type: string; body: { code: string; detail: string | null } }
    if (type === 'closing') said(body.code, body.detail)
  },
  ping: pinged,
  pong() {},
  pause() {},
  resume() {},
  terminate: over,
  cut: over,
})
